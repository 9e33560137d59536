// States a quota that a job would exceed as facts, and makes sentences of them. Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_QUOTA_REACHED_H_
#define MUSTER_PROTO_CONTRACT_QUOTA_REACHED_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {

struct QuotaReached {
  enum class What : uint8_t { kQueuedJobs, kActiveRuns, kGpus };
  What what = What::kQueuedJobs;
  std::string gpu_type;  // with kGpus; empty: all types together
  std::string project;
  std::string user;      // empty: the quota is that of the project as a whole
  uint64_t max = 0;      // GPUs in thousandths
  uint64_t present = 0;  // likewise
  uint64_t asked = 0;    // likewise
};

// Returns `gpus of type h100 of user ada in project vision`.
std::string QuotaName(const QuotaReached& fact);

// Returns the reason of a job that waits.
v1::StateReason QuotaReason(const QuotaReached& fact);

// RESOURCE_EXHAUSTED, QUOTA_REACHED: a submit has to wait, or to be smaller. FAILED_PRECONDITION,
// BEYOND_QUOTA: one run of the job needs more than a quota of GPUs allows in all.
absl::Status QuotaStatus(const QuotaReached& fact);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_QUOTA_REACHED_H_
