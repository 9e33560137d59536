// Translates requests of clients, checking every field. Pure; any thread.
#ifndef MUSTER_BROKER_RPC_REQUESTS_H_
#define MUSTER_BROKER_RPC_REQUESTS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "broker/app/limits.h"
#include "broker/core/core.h"
#include "contract/filter.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobRequest& request, std::string user);
// All requests say validate_only, or none.
absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobsRequest& request, std::string user);

struct Watch {
  std::vector<uint64_t> jobs;  // sorted, each once
  contract::Filter filter;
  std::optional<uint64_t> after;  // none: from now on
  bool until_terminal = false;
};
absl::StatusOr<Watch> ToWatch(const v1::WatchJobsRequest& request, absl::Time now);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_REQUESTS_H_
