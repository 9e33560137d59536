#include "broker/core/run_machine.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/timestamps.h"
#include "contract/failures.h"
#include "contract/launch_refusals.h"
#include "contract/states.h"

namespace muster::core {
namespace {

using contract::JobEvent;
using google::protobuf::util::MessageDifferencer;

// A reason explains one state. Without a known beginning it is as old as the first event that has
// it.
void UpdateReason(v1::StateReason reason, v1::Run* run) {
  if (!reason.has_since()) {
    const v1::StateReason& before = run->state_reason();
    v1::StateReason same = reason;
    if (before.has_since()) *same.mutable_since() = before.since();
    const bool is_same = MessageDifferencer::Equals(same, before);
    *reason.mutable_since() = is_same ? before.since() : run->observed_at();
  }
  *run->mutable_state_reason() = std::move(reason);
}

// Takes over what the event says; what it leaves out stays.
void UpdateRun(agent::v1::RunEvent& event, absl::Time now, v1::Run* run) {
  const bool moved = event.state() != run->state();
  run->set_state(event.state());
  if (event.evidence().has_observed_at()) {
    *run->mutable_observed_at() = event.evidence().observed_at();
  } else {
    SetTimestamp(now, run->mutable_observed_at());
  }
  if (!event.external_id().empty()) run->set_external_id(std::move(*event.mutable_external_id()));
  if (event.has_state_reason()) {
    UpdateReason(std::move(*event.mutable_state_reason()), run);
  } else if (moved) {
    run->clear_state_reason();
  }
  run->set_restarts(std::max(run->restarts(), event.restarts()));
  // The scheduler's estimate is as old as this event, and applies only to a run that waits.
  run->clear_estimated_start_time();
  if (event.has_estimated_start_time() &&
      contract::JobStateFor(run->state()) == v1::JOB_STATE_PENDING) {
    *run->mutable_estimated_start_time() = event.estimated_start_time();
  }
  // A run that waits again has left its nodes, and begins anew.
  if (moved && event.state() == v1::RUN_STATE_PENDING) {
    run->clear_nodes();
    run->clear_progress();
  }
  if (event.nodes_size() > 0) *run->mutable_nodes() = std::move(*event.mutable_nodes());
  if (event.replicas_size() > 0) *run->mutable_replicas() = std::move(*event.mutable_replicas());
  if (event.has_start_time()) *run->mutable_start_time() = event.start_time();
  if (event.has_end_time()) *run->mutable_end_time() = event.end_time();
  if (event.has_exit()) *run->mutable_exit() = event.exit();
  if (event.has_failure()) {
    const uint32_t after_runs = moved ? 0 : run->failure().after_runs();
    *run->mutable_failure() = std::move(*event.mutable_failure());
    run->mutable_failure()->set_after_runs(after_runs);
  }
  if (!event.results_directory().empty())
    run->set_results_directory(std::move(*event.mutable_results_directory()));
  if (event.has_progress()) *run->mutable_progress() = std::move(*event.mutable_progress());
  if (event.has_usage()) *run->mutable_usage() = std::move(*event.mutable_usage());
  if (event.has_slurm_allocation())
    *run->mutable_slurm_allocation() = std::move(*event.mutable_slurm_allocation());
  if (event.logs_complete()) run->set_logs_complete(true);
}

// Returns the part of a run that lists and pages show, which leaves out how fresh it is and whether
// its logs are complete.
v1::Run Shown(const v1::Run& run) {
  v1::Run shown = run;
  shown.clear_observed_at();
  shown.clear_logs_complete();
  return shown;
}

// Fills in what the new state implies and the agent has not said.
void FillIn(v1::Run* run) {
  if (run->state() == v1::RUN_STATE_RUNNING && !run->has_start_time()) {
    *run->mutable_start_time() = run->observed_at();
  }
  if (contract::IsTerminal(run->state()) && !run->has_end_time()) {
    *run->mutable_end_time() = run->observed_at();
  }
  if (run->state() != v1::RUN_STATE_LOST) return;
  v1::Failure* failure = run->mutable_failure();
  if (failure->failure_class() == v1::FAILURE_CLASS_UNSPECIFIED) {
    failure->set_failure_class(v1::FAILURE_CLASS_INFRA);
  }
  if (!failure->message().empty()) return;
  failure->set_code(v1::FAILURE_CODE_LOST);
  contract::PutSentence(failure);
}

// The time for which a cluster that refused a run is ruled out counts from the run's end: by the
// broker's clock, from which the agent's may differ.
void BoundRefusal(absl::Time now, v1::Run* run) {
  if (!contract::MayGoElsewhere(*run)) return;
  const absl::Time assigned = std::min(ToTime(run->assign_time()), now);
  SetTimestamp(std::clamp(ToTime(run->end_time()), assigned, now), run->mutable_end_time());
}

}  // namespace

v1::Run AssignedRun(uint32_t number, std::string run_key, std::string cluster, absl::Time now) {
  v1::Run run;
  run.set_number(number);
  run.set_run_key(std::move(run_key));
  run.set_cluster(std::move(cluster));
  run.set_state(v1::RUN_STATE_ASSIGNED);
  SetTimestamp(now, run.mutable_assign_time());
  SetTimestamp(now, run.mutable_observed_at());
  return run;
}

bool Accepts(const v1::Run& run, const agent::v1::RunEvent& event) {
  const bool is_same = event.state() == run.state();
  if (!is_same && !contract::IsLegal(run.state(), event.state())) return false;
  return !event.logs_complete() || contract::IsTerminal(event.state());
}

RunStep Apply(agent::v1::RunEvent& event, absl::Time now, v1::Run* run) {
  if (!Accepts(*run, event)) return RunStep::kRefused;
  const bool moves = event.state() != run->state();
  const bool restarts = !contract::IsTerminal(event.state()) && event.restarts() > run->restarts();
  Bound(ToTime(run->assign_time()), now, &event);
  if (moves || restarts) {
    UpdateRun(event, now, run);
    FillIn(run);
    BoundRefusal(now, run);
    return restarts ? RunStep::kRestarted : RunStep::kMoved;
  }
  const v1::Run shown = Shown(*run);
  UpdateRun(event, now, run);
  return MessageDifferencer::Equals(Shown(*run), shown) ? RunStep::kUnseen : RunStep::kShown;
}

void GiveUp(v1::Failure failure, absl::Time now, v1::Run* run) {
  run->set_state(v1::RUN_STATE_LOST);
  *run->mutable_failure() = std::move(failure);
  SetTimestamp(now, run->mutable_end_time());
  run->clear_state_reason();
  run->clear_estimated_start_time();
}

bool HasBegun(const v1::Run& run) {
  switch (run.state()) {
    case v1::RUN_STATE_STARTING:
    case v1::RUN_STATE_RUNNING:
    case v1::RUN_STATE_SUSPENDED:
    case v1::RUN_STATE_SUCCEEDED:
      return true;
    case v1::RUN_STATE_FINISHING:
    case v1::RUN_STATE_FAILED:
    case v1::RUN_STATE_CANCELED:
    case v1::RUN_STATE_LOST:
      return run.has_start_time();
    default:
      return false;
  }
}

JobEvent JobEventOf(const v1::Run& run, bool is_followed) {
  if (is_followed) return JobEvent::kRetry;
  switch (contract::JobStateFor(run.state())) {
    case v1::JOB_STATE_RUNNING:
      return HasBegun(run) ? JobEvent::kRunRuns : JobEvent::kRunWaits;
    case v1::JOB_STATE_SUSPENDED:
      return JobEvent::kRunSuspends;
    case v1::JOB_STATE_SUCCEEDED:
      return JobEvent::kRunSucceeds;
    case v1::JOB_STATE_FAILED:
      return JobEvent::kRunFails;
    case v1::JOB_STATE_CANCELED:
      return JobEvent::kRunIsCanceled;
    default:
      return JobEvent::kRunWaits;
  }
}

}  // namespace muster::core
