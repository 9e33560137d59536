// The one way in which the state of a job changes.
#include <utility>

#include "broker/core/impl.h"
#include "contract/states.h"

namespace muster::core {
namespace {

void CountEnd(v1::JobState state, Counters* counters) {
  counters->succeeded += state == v1::JOB_STATE_SUCCEEDED;
  counters->failed += state == v1::JOB_STATE_FAILED;
  counters->canceled += state == v1::JOB_STATE_CANCELED;
}

}  // namespace

bool Core::Impl::Apply(uint64_t id, Job& job, const JobChange& change, v1::Transition transition,
                       Step& step) {
  const Standing before = StandingOf(id, job);
  const bool was_asked_back = job.withdrawn() || job.preempted();
  const bool had_ended = contract::IsTerminal(job.state());
  if (!job.Apply(change)) {
    ++counted_.illegal_transitions;
    return false;
  }
  if (change.event == contract::JobEvent::kRetry) ++counted_.retries;
  if (change.next_run_unix_micros) retries_.Add(id, *change.next_run_unix_micros);
  if (before.is_queued && !job.is_queued()) retries_.Remove(id);
  if (contract::IsTerminal(job.state())) dependencies_.JobEnded(id, job.state());
  if (!had_ended) CountEnd(job.state(), &counted_);
  Recount(id, job, before);
  Record(step, id, job, std::move(transition));
  if (was_asked_back && !job.withdrawn() && !job.preempted()) DropWithdrawal(id, job, step);
  return true;
}

Core::Impl::Standing Core::Impl::StandingOf(uint64_t id, const Job& job) const {
  Standing standing;
  standing.is_queued = job.is_queued();
  standing.is_in_line = job.is_queued() && IsReady(id, job);
  if (!job.is_on_cluster()) return standing;
  standing.cluster = clusters_[job.cluster()].get();
  standing.is_held = job.held();
  // A held run takes no room and no turn.
  if (!standing.is_held && !job.withdrawn()) {
    const bool waits = job.state() == v1::JOB_STATE_PENDING;
    standing.phase = waits ? placement::Phase::kWaits : placement::Phase::kRuns;
  }
  return standing;
}

void Core::Impl::Recount(uint64_t id, const Job& job, const Standing& before) {
  const Standing now = StandingOf(id, job);
  queued_ += now.is_queued;
  queued_ -= before.is_queued;
  if (before.is_in_line && !now.is_in_line) StepAside(id, job);
  if (!before.is_in_line && now.is_in_line) LineUp(id, job);
  const bool moves = before.cluster != now.cluster || before.phase != now.phase;
  if (moves) {
    const Requirements& requirements = groups_.at(job.group)->requirements;
    for (const auto& [standing, adds] : {std::pair(&before, false), std::pair(&now, true)}) {
      if (standing->cluster == nullptr) continue;
      ++standing->cluster->load_version;
      placement::Load& load = standing->cluster->load;
      adds ? load.Add(requirements, standing->phase) : load.Remove(requirements, standing->phase);
      if (standing->phase == placement::Phase::kRuns)
        CountPreemptible(job, standing->cluster, adds ? 1 : -1);
    }
  }
  if (before.cluster != nullptr) {
    if (moves) Open(before.cluster);
    --before.cluster->active;
    before.cluster->held -= before.is_held;
    Show(before.cluster);
  }
  if (now.cluster != nullptr) {
    ++now.cluster->active;
    now.cluster->held += now.is_held;
    Show(now.cluster);
  }
  CountInAccounts(job, before, now);
}

}  // namespace muster::core
