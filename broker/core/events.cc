// What agents report of runs: applied once and in order, acknowledged after the commit.
#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "broker/core/run_stage.h"
#include "broker/core/timestamps.h"
#include "contract/errors.h"
#include "contract/run_key.h"
#include "contract/states.h"

namespace muster::core {
namespace {

using google::protobuf::util::MessageDifferencer;

// A reason explains one state. One of whose beginning nobody knows is as old as the first event
// that has it.
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
  // The scheduler's estimate is of now, and of a run that waits.
  run->clear_estimated_start_time();
  if (event.has_estimated_start_time() &&
      contract::JobStateFor(run->state()) == v1::JOB_STATE_PENDING) {
    *run->mutable_estimated_start_time() = event.estimated_start_time();
  }
  // A run that waits again has left those that it had.
  if (moved && event.state() == v1::RUN_STATE_PENDING) run->clear_nodes();
  if (event.nodes_size() > 0) *run->mutable_nodes() = std::move(*event.mutable_nodes());
  if (event.replicas_size() > 0) *run->mutable_replicas() = std::move(*event.mutable_replicas());
  if (event.has_start_time()) *run->mutable_start_time() = event.start_time();
  if (event.has_end_time()) *run->mutable_end_time() = event.end_time();
  if (event.has_exit()) *run->mutable_exit() = event.exit();
  if (event.has_failure()) *run->mutable_failure() = std::move(*event.mutable_failure());
  if (event.logs_complete()) run->set_logs_complete(true);
}

// What lists and pages show of a run. How fresh it is, and whether its logs are complete, is not
// told to watchers.
std::string Shown(const v1::Run& run) {
  v1::Run shown = run;
  shown.clear_observed_at();
  shown.clear_logs_complete();
  return shown.SerializeAsString();
}

// What follows from a new state when the agent has not said it.
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
  if (failure->message().empty()) failure->set_message("nobody knows of the run any more");
}

}  // namespace

void Core::Impl::On(AgentReported& in, Step& step) {
  Cluster* cluster = CurrentCluster(in.session);
  if (cluster == nullptr) return;
  cluster->last_heard = step.now;
  if (in.events.events_size() > static_cast<int>(kMaxPerMessage)) {
    CloseSession(cluster,
                 contract::BadField("events", fmt::format("has {} events, at most {} are taken",
                                                          in.events.events_size(), kMaxPerMessage)),
                 step);
    return;
  }
  uint64_t& acked = cluster->saved.acked_event_sequence;
  const uint64_t before = acked;
  uint64_t gap_at = 0;
  for (agent::v1::RunEvent& event : *in.events.mutable_events()) {
    if (event.sequence() <= acked) continue;
    if (event.sequence() != acked + 1) {
      gap_at = event.sequence();
      break;
    }
    ++acked;
    ApplyEvent(cluster, event, step);
  }
  if (acked != before) step.out->changes.push_back(AdvanceCluster{cluster->name(), acked});
  SendToAgent send;
  send.session = in.session;
  send.message.mutable_event_ack()->set_sequence(acked);
  step.out->effects.push_back(std::move(send));
  if (gap_at != 0) {
    CloseSession(
        cluster,
        contract::Error(absl::StatusCode::kAborted, "EVENT_GAP",
                        fmt::format("event {} came after event {}; connect again", gap_at, acked)),
        step);
  }
}

void Core::Impl::ApplyEvent(Cluster* cluster, agent::v1::RunEvent& event, Step& step) {
  auto key = contract::RunKey::Parse(event.run_key());
  const bool ours = key.ok() && key->instance == instance_;
  auto it = ours ? cluster->runs.find({key->job, key->run}) : cluster->runs.end();
  if (it == cluster->runs.end()) {
    ++illegal_transitions_;
    return;
  }
  const auto& [id, run] = *it;
  const v1::RunState from = run->state();
  const v1::RunState to = event.state();
  const bool moved = from != to;
  if ((moved && !contract::IsLegal(from, to)) ||
      (event.logs_complete() && !contract::IsTerminal(to))) {
    ++illegal_transitions_;
    return;
  }
  const bool restarted = !contract::IsTerminal(to) && event.restarts() > run->restarts();
  Bound(ToTime(run->assign_time()), step.now, &event);
  if (const auto latest = step.moved.find(id); latest != step.moved.end()) {
    std::get<AppendTransition>(step.out->changes[latest->second]).run_then =
        std::make_shared<const v1::Run>(*run);
    step.moved.erase(latest);
  }
  const std::string shown = moved || restarted ? "" : Shown(*run);
  UpdateRun(event, step.now, run.get());
  step.runs.emplace_back(cluster, id);
  if (!moved && !restarted) {
    if (Shown(*run) != shown) step.changed.insert(id);
    return;
  }
  FillIn(run.get());
  if (contract::IsTerminal(to)) --cluster->active;
  v1::Transition transition;
  if (restarted) transition.set_kind(v1::TRANSITION_KIND_RESTARTED);
  *transition.mutable_evidence() = std::move(*event.mutable_evidence());
  MoveJob(*run, id, std::move(transition), step);
}

void Core::Impl::MoveJob(const v1::Run& run, RunId id, v1::Transition transition, Step& step) {
  Job& job = jobs_.at(id.job);
  const bool is_followed = IsFollowed(run, job);
  // The next run is held as this one was to be.
  if (!is_followed && job.held() && HasBegun(run)) EndLateHold(run, id, job, step);
  if (contract::IsTerminal(run.state()) && job.held()) --clusters_[job.cluster]->held;
  job.set_state(is_followed ? v1::JOB_STATE_QUEUED : JobStateFor(run, job.cancel_requested));
  if (run.has_start_time() && job.start_unix_micros == Job::kNotStarted) {
    job.start_unix_micros = ToUnixMicros(run.start_time());
  }
  transition.set_run(id.number);
  transition.set_run_state(run.state());
  step.moved[id] = step.out->changes.size();
  Record(step, id.job, job, std::move(transition));
  if (is_followed) AwaitNextRun(id.job, job, run, step);
}

}  // namespace muster::core
