// The reasons to doubt what a run's own record says.
#include "agents/slurm/exit_record.h"
#include "agents/slurm/states.h"
#include "agents/slurm/verdict.h"

namespace muster::slurm {
namespace {

// Tells whether Slurm ended the job, and not its command.
bool IsStopped(JobPhase phase) { return HasEnded(phase) && phase > JobPhase::kFailed; }

}  // namespace

// The reason stays when the job is canceled.
bool IsLaunchFailed(const RunFacts& facts) {
  if (!facts.queue.has_value()) return false;
  const std::string& reason = facts.queue->reason;
  return reason == "launch failed requeued held" || reason == "launch_failed_requeued_held";
}

Doubt DoubtOf(const RunFacts& facts) {
  const ExitRecord& record = *facts.record;
  if (record.terminated || record.continued) return Doubt::kSignal;
  if (facts.queue.has_value() && IsStopped(facts.queue->state.phase)) return Doubt::kStopped;
  if (facts.limit_end.has_value() && record.end >= *facts.limit_end - kLimitSlack)
    return Doubt::kTimeLimit;
  return Doubt::kNone;
}

bool ProvesSuccess(const RunFacts& facts) {
  return facts.record.has_value() && facts.record->EndedWithZero() && !facts.record_is_the_users &&
         DoubtOf(facts) == Doubt::kNone;
}

bool ClaimsSuccess(const RunFacts& facts) {
  return facts.record_is_the_users && facts.record.has_value() && facts.record->EndedWithZero();
}

}  // namespace muster::slurm
