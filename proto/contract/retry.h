// Says what RetryPolicy means: which ended run is followed by another one, and after what time.
// Pure functions, for any thread.
#ifndef MUSTER_PROTO_CONTRACT_RETRY_H_
#define MUSTER_PROTO_CONTRACT_RETRY_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

class FieldErrors;

// A policy with its defaults.
struct RetryRule {
  uint32_t max_runs = 11;                      // of the job in all, 1 to kMaxRuns
  bool on_preemption = false;                  // whether a preempted run is followed
  bool on_failure = false;                     // whether one is whose program failed
  std::vector<int32_t> exit_codes = {};        // of the program after which one is, anyway
  absl::Duration backoff = absl::Seconds(10);  // before the second run, 0 to kMaxBackoff

  friend bool operator==(const RetryRule&, const RetryRule&) = default;
};

// A policy names at most this many exit codes; on_failure covers more of them better.
inline constexpr int kMaxRetryExitCodes = 64;
// A fault that occurs this often is not mended by trying; a job's page still fits into one message.
inline constexpr uint32_t kMaxRuns = 100;
// A cluster that is mended is used again within this time.
inline constexpr absl::Duration kMaxBackoff = absl::Hours(1);

// Fields that are not set have their defaults.
RetryRule RetryRuleOf(const v1::JobSpec& spec);

// Returns whether a run that has ended like this may end better if it is tried again, so that
// another one follows while the budget lasts. A LOST run never is: nobody can say that it has
// stopped, and two runs of one job at the same time are worse than none.
bool IsWorthAnother(const v1::Run& ended, const RetryRule& rule);

// Returns the time that a job waits before its run of this number, from 2 on: twice as long as
// before the run ahead of it.
absl::Duration BackoffBefore(uint32_t run, const RetryRule& rule);

// Adds an error for each fault of the spec's policy.
void CheckRetry(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_RETRY_H_
