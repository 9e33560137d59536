// Translates requests of clients, checking every field. Pure; any thread.
#ifndef MUSTER_BROKER_RPC_REQUESTS_H_
#define MUSTER_BROKER_RPC_REQUESTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "contract/filter.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

inline constexpr int kMaxJobsPerCall = 1000;  // SubmitJobs, CancelJobs, HoldJobs, WatchJobs
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;
inline constexpr size_t kMaxReasonBytes = 256;  // of cancels, holds and releases

absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobRequest& request, std::string user);
// All requests say validate_only, or none.
absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobsRequest& request, std::string user);
absl::StatusOr<core::Cancel> ToCancel(const v1::CancelJobsRequest& request, std::string user);
absl::StatusOr<core::Hold> ToHold(const v1::HoldJobsRequest& request, std::string user);
absl::StatusOr<core::Hold> ToHold(const v1::ReleaseJobsRequest& request, std::string user);

// 0 is the default; more than kMaxPageSize is taken as that, as AIP-158 has it; less than 0 is
// refused.
absl::StatusOr<int> ToPageSize(int requested);

struct Watch {
  std::vector<uint64_t> jobs;  // sorted, each once
  contract::Filter filter;
  int64_t after_sequence = 0;
  bool until_terminal = false;
};
absl::StatusOr<Watch> ToWatch(const v1::WatchJobsRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_REQUESTS_H_
