// Arguments that several requests have. Pure; any thread.
#ifndef MUSTER_BROKER_APP_ARGUMENTS_H_
#define MUSTER_BROKER_APP_ARGUMENTS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"

namespace muster::broker {

// 0 is the default; more than kMaxPageSize is taken as that, as AIP-158 has it; less than 0 is
// refused.
absl::StatusOr<int> ToPageSize(int requested);

// Numbers of jobs, at most kMaxJobsPerCall.
absl::Status CheckIds(const google::protobuf::RepeatedField<uint64_t>& ids);

// Of a request that chooses jobs either by their numbers or by a filter.
absl::Status CheckChoice(const google::protobuf::RepeatedField<uint64_t>& ids,
                         std::string_view filter);

absl::Status CheckReason(std::string_view reason);

// The same error about a field of a larger message: "nodes" becomes "requests[3].spec.nodes".
absl::Status Within(std::string_view prefix, const absl::Status& status);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ARGUMENTS_H_
