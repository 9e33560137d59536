#include "clients/cli/slurm/refusal.h"

#include <utility>

#include "clients/cli/slurm/one_job.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// Returns whether a run in this state has no answer from its cluster's scheduler yet.
bool IsBeingLaunched(v1::RunState state) {
  return state == v1::RUN_STATE_ASSIGNED || state == v1::RUN_STATE_LAUNCHING ||
         state == v1::RUN_STATE_LAUNCH_UNKNOWN;
}

bool MayBeLaunchedSoon(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_QUEUED) {
    return job.runs().empty() &&
           job.state_reason().code() == v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED;
  }
  return !job.runs().empty() && IsBeingLaunched(job.runs().rbegin()->state());
}

// A run that its scheduler had has a name there.
bool WasRefused(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_FAILED && !job.has_exit() && !job.runs().empty() &&
         job.runs().rbegin()->external_id().empty();
}

// Returns whether the step is the end of the wait: the job has ended, its scheduler has its run, or
// another run is to follow.
bool IsAnswer(const v1::Transition& step) {
  if (contract::IsTerminal(step.job_state()) || step.kind() == v1::TRANSITION_KIND_RETRY)
    return true;
  return step.run() > 0 && !IsBeingLaunched(step.run_state()) &&
         !contract::IsTerminal(step.run_state());
}

}  // namespace

std::optional<v1::Job> AwaitRefusal(client::Client& client, uint64_t id, absl::Time deadline) {
  absl::StatusOr<v1::Job> job = GetOneJob(client, id);
  if (!job.ok()) return std::nullopt;
  if (MayBeLaunchedSoon(*job)) {
    const auto steps = WatchOneJob(client, id, deadline);
    while (true) {
      const auto step = steps->Next();
      if (!step.ok() || !step->has_value()) return std::nullopt;
      if (!IsAnswer((*step)->transition())) continue;
      if (!contract::IsTerminal((*step)->transition().job_state())) return std::nullopt;
      break;
    }
    job = GetOneJob(client, id);
  }
  if (!job.ok() || !WasRefused(*job)) return std::nullopt;
  return *std::move(job);
}

}  // namespace muster::cli
