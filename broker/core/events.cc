// Reports of agents about runs: applied once and in order, acknowledged after the commit.
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "broker/core/timestamps.h"
#include "contract/refusals.h"
#include "contract/run_key.h"
#include "contract/states.h"

namespace muster::core {
void Core::Impl::On(AgentReported& in, Step& step) {
  Cluster* cluster = CurrentCluster(in.session);
  if (cluster == nullptr) return;
  cluster->last_heard = step.now;
  Show(cluster);
  if (in.events.events_size() > static_cast<int>(kMaxPerMessage)) {
    const auto events = static_cast<size_t>(in.events.events_size());
    CloseSession(cluster,
                 contract::Refusal{contract::refused::TooManyEvents{events, kMaxPerMessage}}, step);
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
  if (gap_at != 0)
    CloseSession(cluster, contract::Refusal{contract::refused::EventGap{gap_at, acked}}, step);
}

void Core::Impl::ApplyEvent(Cluster* cluster, agent::v1::RunEvent& event, Step& step) {
  auto key = contract::RunKey::Parse(event.run_key());
  const bool ours = key.ok() && key->instance == instance_;
  auto it = ours ? cluster->runs.find({key->job, key->run}) : cluster->runs.end();
  if (it == cluster->runs.end()) {
    if (ours && event.has_usage() && contract::IsTerminal(event.state()) && !IsUnknownYet(key->job))
      return TakeLateUsage(*cluster, {key->job, key->run}, event, step);
    ++counted_.illegal_transitions;
    return;
  }
  const auto& [id, run] = *it;
  if (!Accepts(*run, event)) {
    ++counted_.illegal_transitions;
    return;
  }
  if (const auto latest = step.moved.find(id); latest != step.moved.end()) {
    std::get<AppendTransition>(step.out->changes[latest->second]).run_then =
        std::make_shared<const v1::Run>(*run);
    step.moved.erase(latest);
  }
  const RunLook before = LookAt(*run);
  const RunStep what = core::Apply(event, step.now, run.get());
  NoteReport(cluster, id, *run, before, step.now);
  step.runs.emplace_back(cluster, id);
  if (what == RunStep::kShown) step.changed.insert(id);
  if (IsKnownToBeHeld(*run)) EndIfHeld(*cluster, *run, step);
  if (what != RunStep::kMoved && what != RunStep::kRestarted) return;
  v1::Transition transition;
  if (what == RunStep::kRestarted) transition.set_kind(v1::TRANSITION_KIND_RESTARTED);
  *transition.mutable_evidence() = std::move(*event.mutable_evidence());
  MoveJob(*run, id, std::move(transition), step);
}

// Accounting lags behind the end of a run and its logs, which is all that the core keeps a run for.
void Core::Impl::TakeLateUsage(const Cluster& cluster, RunId id, agent::v1::RunEvent& event,
                               Step& step) {
  BoundUsage(event.mutable_usage());
  step.changed.insert(id);
  step.out->changes.push_back(PutUsage{.job = id.job,
                                       .run = id.number,
                                       .cluster = cluster.name(),
                                       .usage = std::move(*event.mutable_usage()),
                                       .sequence = next_sequence_++});
}

void Core::Impl::MoveJob(v1::Run& run, RunId id, v1::Transition transition, Step& step) {
  Job& job = jobs_.at(id.job);
  const bool wants_another = WantsAnotherRun(run, job);
  const bool is_refused = GoesElsewhere(run, id.job, job, step.now);
  const bool is_followed = is_refused || (wants_another && HasRunsLeft(job));
  if (wants_another && !is_followed && CountedRuns(job) > 1)
    run.mutable_failure()->set_after_runs(CountedRuns(job));
  // The next run is held as this one was to be.
  if (!is_followed && job.held() && !job.withdrawn() && HasBegun(run))
    EndLateHold(run, id, job, step);
  if (!is_followed && job.withdrawn() && HasBegun(run)) EndLateWithdrawal(run, id, job, step);
  JobChange change{JobEventOf(run, is_followed)};
  change.is_refused = is_refused;
  if (is_refused) RuleOut(id.job, job, step.now);
  if (job.withdrawn() && change.event == contract::JobEvent::kRunIsCanceled) {
    change.event = contract::JobEvent::kComesBack;
    transition.set_kind(v1::TRANSITION_KIND_WITHDRAWN);
  }
  if (job.preempted() && change.event == contract::JobEvent::kRunIsCanceled) {
    change.event = contract::JobEvent::kIsPreempted;
    transition.set_kind(v1::TRANSITION_KIND_PREEMPTED);
  }
  if (run.has_start_time()) change.start_unix_micros = ToUnixMicros(run.start_time());
  const absl::Time next_run = is_followed && !is_refused ? NextRunTime(job, step) : step.now;
  if (next_run > step.now) change.next_run_unix_micros = absl::ToUnixMicros(next_run);
  transition.set_run(id.number);
  transition.set_run_state(run.state());
  const size_t at = step.out->changes.size();
  if (!Apply(id.job, job, change, std::move(transition), step)) return;
  step.moved[id] = at;
  CountUsage(run, job, step);
  if (is_refused) {
    TellOfRefusal(id.job, job, run, step);
  } else if (is_followed) {
    TellOfRetry(id.job, job, run, next_run, step);
  }
}

void Core::Impl::CountUsage(const v1::Run& run, const Job& job, Step& step) const {
  if (!contract::IsTerminal(run.state())) return;
  const Group& group = *groups_.at(job.group);
  step.usage.Add(run, group.requirements, accounts_.NameOf(group.user));
}

}  // namespace muster::core
