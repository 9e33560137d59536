#include "agents/core/run_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "agents/core/clean_text.h"
#include "agents/core/run_events.h"
#include "contract/run_key.h"
#include "contract/states.h"

namespace muster::agents {
namespace {

agent::v1::RunEvent AgentEvent(absl::Time wall, std::string_view detail) {
  return EventWith(AgentEvidence(wall, detail));
}

}  // namespace

RunTable::RunTable(const Options& options, EventLog* events, std::vector<JournalRun> runs)
    : options_(options),
      events_(*events),
      launch_queue_(options.max_launches_in_flight, options.max_file_launches_in_flight) {
  for (JournalRun& record : runs) {
    next_order_ = std::max(next_order_, record.order + 1);
    std::string key = record.assignment->run_key();
    Run run;
    run.record = std::move(record);
    runs_.emplace(std::move(key), std::move(run));
  }
  has_broker_spoken_ = are_starts_allowed_ = runs_.empty();
}

void RunTable::Recover(const std::vector<agent::v1::RunEvent>& unacknowledged, const Step& step) {
  for (const agent::v1::RunEvent& event : unacknowledged) {
    if (event.logs_complete()) logs_event_.emplace(event.sequence(), event.run_key());
    Run* run = event.has_usage() ? Find(event.run_key()) : nullptr;
    if (run != nullptr) *run->told.mutable_usage() = event.usage();
  }
  for (const RunHandle& handle : AllRuns()) Resume(*Find(handle.run_key), step);
}

void RunTable::Resume(Run& run, const Step& step) {
  const v1::RunState state = run.record.state;
  if (state == v1::RUN_STATE_ASSIGNED) {
    AwaitLaunch(run, step);
  } else if (state == v1::RUN_STATE_LAUNCHING) {
    Change(run, AgentEvent(step.wall, "the agent was restarted while it launched the run"),
           v1::RUN_STATE_LAUNCH_UNKNOWN, step);
  } else if (state == v1::RUN_STATE_LAUNCH_UNKNOWN) {
    AskLookup(run, step);
  } else if (contract::IsTerminal(state) && run.record.logs_complete) {
    AwaitUsage(run, step);
    const bool is_acknowledged =
        std::none_of(logs_event_.begin(), logs_event_.end(),
                     [&](const auto& event) { return event.second == run.key(); });
    if (is_acknowledged) LetGo(run, step);
  } else {
    AfterChange(run, step);
  }
}

absl::Status RunTable::Take(const agent::v1::Assignment& assignment, const Step& step) {
  const std::string& key = assignment.run_key();
  // Backends make directories and job names of it.
  if (auto parsed = contract::RunKey::Parse(key); !parsed.ok()) return parsed.status();
  if (Find(key) != nullptr) {
    if (assignment.cancel_requested()) WantCancel(key, step);
    if (assignment.held()) WantHeld(key, /*held=*/true, step);
    return absl::OkStatus();
  }
  leaving_.erase(key);
  usage_.Erase(key);
  Run& run = runs_[key];
  run.record.assignment = std::make_shared<const agent::v1::Assignment>(assignment);
  run.record.state = v1::RUN_STATE_ASSIGNED;
  run.record.order = next_order_++;
  if (assignment.held()) run.wants_held = true;
  changed_.emplace(run.record.order, key);
  if (assignment.may_have_been_launched()) {
    run.record.cancel_requested = assignment.cancel_requested();
    Change(run, AgentEvent(step.wall, "an earlier connection may have carried this assignment"),
           v1::RUN_STATE_LAUNCH_UNKNOWN, step);
    return absl::OkStatus();
  }
  AwaitLaunch(run, step);
  if (assignment.cancel_requested()) WantCancel(key, step);
  return absl::OkStatus();
}

void RunTable::WantCancel(const std::string& run_key, const Step& step) {
  Run* run = Find(run_key);
  if (run == nullptr || contract::IsTerminal(run->record.state)) return;
  const bool is_new = !std::exchange(run->record.cancel_requested, true);
  if (is_new) {
    changed_.emplace(run->record.order, run_key);
  }
  if (run->record.state == v1::RUN_STATE_ASSIGNED || run->is_deferred()) {
    EndUnlaunched(*run, AgentEvent(step.wall, "canceled before its launch"), v1::RUN_STATE_CANCELED,
                  step);
  } else if (IsOnCluster(run->record.state)) {
    is_new ? AskCancel(*run, step) : AskFirstCancel(*run, step);
  }
}

void RunTable::Release(const std::string& run_key, const Step& step) {
  Run* run = Find(run_key);
  // One that the broker has whole is none of its runs any more, and goes by itself.
  if (run == nullptr || run->let_go) return;
  run->released = true;
  usage_.Erase(run_key);
  if (contract::IsTerminal(run->record.state)) {
    LetGo(*run, step);
  } else {
    WantCancel(run_key, step);
  }
}

bool RunTable::MayReleasedBegin() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const auto& entry) {
    const Run& run = entry.second;
    return run.released && !contract::IsTerminal(run.record.state) &&
           KeepsLease(*run.record.assignment);
  });
}

void RunTable::BrokerHasSpoken() {
  if (std::exchange(has_broker_spoken_, true)) return;
  for (const auto& [key, run] : runs_) {
    const bool has_wish = run.record.cancel_requested || run.wants_held.value_or(false);
    if (has_wish && run.call != Call::kNone) wishes_first_.insert(key);
  }
}

void RunTable::Acknowledged(uint64_t sequence, const Step& step) {
  while (!logs_event_.empty() && logs_event_.begin()->first <= sequence) {
    const std::string key = logs_event_.begin()->second;
    logs_event_.erase(logs_event_.begin());
    Run* run = Find(key);
    if (run != nullptr && run->record.logs_complete) LetGo(*run, step);
  }
}

void RunTable::OnLaunched(Launched launched, const Step& step) {
  Run* run = Settle(launched.run_key, Call::kLaunch);
  if (run == nullptr) return;
  LaunchOutcome& outcome = launched.outcome;
  v1::Evidence evidence = Completed(std::move(outcome.evidence), step.wall);
  switch (outcome.kind) {
    case LaunchOutcome::Kind::kLaunched:
      Adopt(*run, outcome.external_id, std::move(evidence), step);
      return;
    case LaunchOutcome::Kind::kRefused: {
      agent::v1::RunEvent event = EventWith(std::move(evidence));
      v1::Failure& failure = *event.mutable_failure() = std::move(outcome.failure);
      if (failure.failure_class() == v1::FAILURE_CLASS_UNSPECIFIED)
        failure.set_failure_class(v1::FAILURE_CLASS_CONFIG);
      if (failure.phase() == v1::FAILURE_PHASE_UNSPECIFIED)
        failure.set_phase(v1::FAILURE_PHASE_LAUNCH);
      EndUnlaunched(*run, std::move(event), v1::RUN_STATE_FAILED, step);
      return;
    }
    case LaunchOutcome::Kind::kDeferred:
      Defer(*run, std::move(evidence), outcome.retry_after, step);
      return;
    case LaunchOutcome::Kind::kUnclear: {
      agent::v1::RunEvent event = EventWith(std::move(evidence));
      TakeWhy(v1::STATE_REASON_CODE_LAUNCH_UNKNOWN, event.evidence().detail(), &run->told, &event);
      run->why_told = step.now;
      Change(*run, std::move(event), v1::RUN_STATE_LAUNCH_UNKNOWN, step);
      return;
    }
  }
}

// A process that takes over looks such a run up, as it does after any launch that it did not make.
void RunTable::Defer(Run& run, v1::Evidence evidence, absl::Duration retry_after,
                     const Step& step) {
  if (run.record.cancel_requested) {
    EndUnlaunched(run, EventWith(std::move(evidence)), v1::RUN_STATE_CANCELED, step);
    return;
  }
  TellWhy(run, v1::STATE_REASON_CODE_LAUNCH_DEFERRED, std::move(evidence), step);
  if (retry_after > absl::ZeroDuration()) {
    SetDue(run, step.now + retry_after);
  } else {
    AwaitLaunch(run, step);
  }
}

void RunTable::TellWhy(Run& run, v1::StateReasonCode code, v1::Evidence evidence,
                       const Step& step) {
  if (evidence.detail().empty() || evidence.detail() == run.told.state_reason().detail() ||
      step.now < run.why_told + kMinWhyInterval)
    return;
  agent::v1::RunEvent event = EventWith(std::move(evidence));
  TakeWhy(code, event.evidence().detail(), &run.told, &event);
  run.why_told = step.now;
  Tell(run, std::move(event), step);
}

void RunTable::OnCancelAsked(const CancelAsked& asked, const Step& step) {
  Run* run = Settle(asked.run_key, Call::kCancel);
  if (run == nullptr) return;
  if (run->let_go) {
    LetGo(*run, step);
  } else if (!IsOnCluster(run->record.state)) {
    return;
  } else if (asked.status.ok()) {
    run->canceled = step.now;
  } else {
    SetDue(*run, step.now + options_.cancel_interval);
  }
}

void RunTable::OnObserved(const std::vector<Observation>& observations, absl::Time began,
                          const Step& step) {
  for (const Observation& seen : observations) {
    Run* run = Find(seen.run_key);
    // An observation never stands in for the answer to a launch or a look-up.
    if (run == nullptr || !IsOnCluster(run->record.state)) continue;
    // A run that is FINISHING needs no cancel any more. All runs that one look shows alive come
    // together, and none before a look, so that cancels leave room for what shows their effect.
    const bool is_alive =
        seen.state >= v1::RUN_STATE_PENDING && seen.state < v1::RUN_STATE_FINISHING;
    // An end that was read while a later look saw the run again is one of an earlier start.
    if (!is_alive && began < run->seen_alive) continue;
    if (is_alive) run->seen_alive = std::max(run->seen_alive, began);
    if (is_alive && run->canceled + options_.cancel_interval <= began &&
        run->canceled != absl::InfinitePast()) {
      AskCancel(*run, step);
    }
    Observe(*run, seen, step);
  }
}

void RunTable::Observe(Run& run, const Observation& seen, const Step& step) {
  const v1::RunState from = run.record.state;
  const bool moves = seen.state != from;
  if (moves && (seen.state < v1::RUN_STATE_PENDING || !contract::IsLegal(from, seen.state))) return;
  if (moves && seen.state == v1::RUN_STATE_PENDING) {  // requeued: told anew
    run.told.Clear();
    late_replicas_.erase(run.key());
  }
  run.told.set_external_id(run.record.external_id);
  agent::v1::RunEvent event = EventWith(Completed(seen.evidence, step.wall));
  bool news = TakeNews(seen, &run.told, &event);
  news |= TakeReplicas(run, seen, moves, step, &event);
  if (!moves && !news) return;
  run.record.external_id = run.told.external_id();
  Change(run, std::move(event), seen.state, step);
}

void RunTable::OnLogsShipped(const std::string& run_key, const Step& step) {
  Run* run = Find(run_key);
  if (run == nullptr || !contract::IsTerminal(run->record.state) || run->record.logs_complete) {
    return;
  }
  run->record.logs_complete = true;
  Change(*run, AgentEvent(step.wall, "the archive has all logs"), run->record.state, step);
}

void RunTable::OnTime(const Step& step) {
  TellLateReplicas(step);
  ForgetAgain(step);
  AskUsage(step);
  for (OrderedRuns& runs : gathering_.TakeDue(step.now))
    launch_queue_.AddTogether(std::move(runs), /*has_files=*/false);
  while (!due_.empty() && due_.begin()->first <= step.now) {
    Run& run = *Find(due_.begin()->second);
    if (run.record.state == v1::RUN_STATE_LAUNCH_UNKNOWN) {
      AskLookup(run, step);
    } else if (run.is_deferred()) {
      SetDue(run, absl::InfiniteFuture());
      AwaitLaunch(run, step);
    } else if (run.record.cancel_requested) {
      AskCancel(run, step);
    } else {
      SetDue(run, absl::InfiniteFuture());
      AskHold(run, step);
    }
  }
}

void RunTable::Finish(const Step& step) {
  const bool may_launch = has_broker_spoken_ && !draining_;
  while (may_launch) {
    const std::vector<std::string> together = launch_queue_.Take();
    if (together.empty()) break;
    for (const std::string& key : together) StartLaunch(*Find(key), "launching", step);
  }
  if (may_launch && !are_starts_allowed_) AllowStarts(step);
  for (const auto& [order, key] : changed_) {
    step.out->changes.push_back(PutRun{Find(key)->record});
  }
  changed_.clear();
}

void RunTable::AllowStarts(const Step& step) {
  std::erase_if(wishes_first_, [this](const std::string& key) {
    const Run* run = Find(key);
    return run == nullptr || run->call == Call::kNone;
  });
  if (!wishes_first_.empty()) return;
  are_starts_allowed_ = true;
  step.out->effects.push_back(DoAllowStarts{});
}

void RunTable::StartLaunch(Run& run, std::string_view why, const Step& step) {
  run.record.launch_time = step.wall;
  run.absent_since = absl::InfiniteFuture();
  run.call = Call::kLaunch;
  launch_queue_.Begin(run.brings_files());
  if (run.record.state == v1::RUN_STATE_LAUNCHING) {
    changed_.emplace(run.record.order, run.key());  // the broker knows it, and why it waited
  } else {
    Change(run, AgentEvent(step.wall, why), v1::RUN_STATE_LAUNCHING, step);
  }
  RunHandle handle = Handle(run);
  run.told_held = handle.held;
  if (handle.held != handle.assignment->held()) {
    auto assignment = std::make_shared<agent::v1::Assignment>(*handle.assignment);
    assignment->set_held(handle.held);
    handle.assignment = std::move(assignment);
  }
  step.out->effects.push_back(DoLaunch{std::move(handle)});
}

void RunTable::AskFirstCancel(Run& run, const Step& step) {
  const bool is_first = run.canceled == absl::InfinitePast();
  if (is_first && run.due == absl::InfiniteFuture()) AskCancel(run, step);
}

void RunTable::AskCancel(Run& run, const Step& step) {
  SetDue(run, absl::InfiniteFuture());
  if (run.call != Call::kNone) return;
  run.call = Call::kCancel;
  step.out->effects.push_back(DoCancel{Handle(run)});
}

void RunTable::Adopt(Run& run, const std::string& external_id, v1::Evidence evidence,
                     const Step& step) {
  run.record.external_id = CleanText(external_id, kMaxNameBytes);
  agent::v1::RunEvent event = EventWith(std::move(evidence));
  event.set_external_id(run.record.external_id);
  Change(run, std::move(event), v1::RUN_STATE_PENDING, step);
}

void RunTable::Change(Run& run, agent::v1::RunEvent event, v1::RunState state, const Step& step) {
  if (run.record.cancel_requested && state == v1::RUN_STATE_FAILED) state = EndAsCanceled(&event);
  run.record.state = state;
  changed_.emplace(run.record.order, run.key());
  Tell(run, std::move(event), step);
  AfterChange(run, step);
}

void RunTable::Tell(const Run& run, agent::v1::RunEvent event, const Step& step) {
  if (run.released) return;
  event.set_run_key(run.key());
  event.set_state(run.record.state);
  event.set_logs_complete(run.record.logs_complete);
  CleanTexts(&event);
  const uint64_t sequence = events_.Append(std::move(event), &step.out->changes);
  if (run.record.logs_complete) logs_event_.emplace(sequence, run.key());
}

void RunTable::EndUnlaunched(Run& run, agent::v1::RunEvent event, v1::RunState state,
                             const Step& step) {
  launch_queue_.Erase(run.record.order);
  gathering_.Erase(run.record.order);
  run.record.logs_complete = true;
  Change(run, std::move(event), state, step);
}

// Starts the effects that the run's new state asks for.
void RunTable::AfterChange(Run& run, const Step& step) {
  const v1::RunState state = run.record.state;
  if (contract::IsTerminal(state)) {
    SetDue(run, absl::InfiniteFuture());
    if (run.released) {
      LetGo(run, step);
    } else if (!run.record.logs_complete) {
      step.out->effects.push_back(ShipLogs{Handle(run), /*ended=*/true});
      AwaitUsage(run, step);
    }
    return;
  }
  if (state == v1::RUN_STATE_LAUNCH_UNKNOWN) AskLookup(run, step);
  if (!IsOnCluster(state)) return;
  if (state != v1::RUN_STATE_PENDING && !run.ships_logs) {
    run.ships_logs = true;
    step.out->effects.push_back(ShipLogs{Handle(run), /*ended=*/false});
  }
  if (run.record.cancel_requested) AskFirstCancel(run, step);
  AskHold(run, step);
}

void RunTable::SetDue(Run& run, absl::Time due) {
  if (run.due != absl::InfiniteFuture()) due_.erase({run.due, run.key()});
  run.due = due;
  if (run.due != absl::InfiniteFuture()) due_.emplace(run.due, run.key());
}

RunTable::Run* RunTable::Find(const std::string& run_key) {
  auto found = runs_.find(run_key);
  return found == runs_.end() ? nullptr : &found->second;
}

RunTable::Run* RunTable::Settle(const std::string& run_key, Call call) {
  Run* run = Find(run_key);
  if (run == nullptr || run->call != call) return nullptr;
  if (call == Call::kLaunch) launch_queue_.End(run->brings_files());
  run->call = Call::kNone;
  return run;
}

RunHandle RunTable::Handle(const Run& run) const {
  return RunHandle{run.key(),
                   run.record.external_id,
                   run.record.state,
                   run.record.launch_time,
                   run.record.assignment,
                   run.wants_held.value_or(run.record.assignment->held()),
                   run.record.cancel_requested};
}

void RunTable::AddTo(agent::v1::AgentHello* hello) const {
  for (const auto& [key, run] : runs_) {
    if (run.let_go) continue;
    agent::v1::HeldRun* held = hello->add_runs();
    held->set_run_key(key);
    held->set_state(run.record.state);
  }
}

std::vector<RunHandle> RunTable::RunsToObserve() const {
  std::vector<RunHandle> handles;
  for (const auto& [key, run] : runs_) {
    if (IsOnCluster(run.record.state)) handles.push_back(Handle(run));
  }
  return handles;
}

std::optional<RunHandle> RunTable::FindRun(const std::string& run_key) const {
  const auto found = runs_.find(run_key);
  if (found == runs_.end()) return std::nullopt;
  return Handle(found->second);
}

std::vector<RunHandle> RunTable::AllRuns() const {
  std::map<uint64_t, const Run*> by_order;
  for (const auto& [key, run] : runs_) by_order.emplace(run.record.order, &run);
  std::vector<RunHandle> handles;
  for (const auto& [order, run] : by_order) handles.push_back(Handle(*run));
  return handles;
}

}  // namespace muster::agents
