// Checks of arguments that several requests have. Pure; any thread.
#ifndef MUSTER_BROKER_APP_ARGUMENTS_H_
#define MUSTER_BROKER_APP_ARGUMENTS_H_

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "contract/errors.h"
#include "google/protobuf/repeated_field.h"

namespace muster::broker {

// 0 means the default; more than kMaxPageSize means kMaxPageSize, as AIP-158 has it; a negative
// size is refused.
absl::StatusOr<int> ToPageSize(int requested);

// Checks the numbers of jobs: at most kMaxJobsPerCall.
absl::Status CheckIds(const google::protobuf::RepeatedField<uint64_t>& ids);

// Checks that a request chooses jobs either by their numbers or by a filter.
absl::Status CheckChoice(const google::protobuf::RepeatedField<uint64_t>& ids,
                         std::string_view filter);

// Microseconds since 1970. Nothing if the time is not set, or is no time of the years 1 to 9999,
// which is an error of the field.
std::optional<int64_t> ToMicros(std::string_view field, bool is_set,
                                const google::protobuf::Timestamp& time,
                                contract::FieldErrors* errors);

absl::Status CheckReason(std::string_view reason);

// Turns an error about a field into one about the larger message: "nodes" becomes
// "requests[3].spec.nodes".
absl::Status Within(std::string_view prefix, const absl::Status& status);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ARGUMENTS_H_
