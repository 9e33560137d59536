// Tells the cluster about runs that the broker holds back, or lets go on, while they wait there.
#include <fmt/core.h>

#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

bool IsBeingLaunched(v1::RunState state) {
  return state == v1::RUN_STATE_LAUNCHING || state == v1::RUN_STATE_LAUNCH_UNKNOWN;
}

}  // namespace

void RunTable::WantHeld(const std::string& run_key, bool held, const Step& step) {
  Run* run = Find(run_key);
  if (run == nullptr) return;
  if (run->wants_held != held) run->hold_error.clear();
  run->wants_held = held;
  // The other wish may have failed, and wait for its repetition.
  if (run->record.state == v1::RUN_STATE_PENDING && !run->record.cancel_requested) {
    SetDue(*run, absl::InfiniteFuture());
  }
  if (IsBeingLaunched(run->record.state)) step.out->effects.push_back(DoNoteHold{run_key, held});
  AskHold(*run, step);
}

void RunTable::AskHold(Run& run, const Step& step) {
  // A run that runs is held no more, and a run that is requeued waits again.
  const bool matters = run.record.state == v1::RUN_STATE_PENDING && !run.record.cancel_requested;
  if (!matters || !run.wants_held || run.told_held == run.wants_held) return;
  if (run.call != Call::kNone || run.due != absl::InfiniteFuture()) return;
  run.call = Call::kHold;
  // Nobody knows the state of the hold until the call answers, nor after it fails.
  run.told_held.reset();
  step.out->effects.push_back(DoHold{Handle(run), *run.wants_held});
}

void RunTable::OnHoldAsked(const HoldAsked& asked, const Step& step) {
  Run* run = Settle(asked.run_key, Call::kHold);
  if (run == nullptr) return;
  if (run->let_go) return LetGo(*run, step);
  if (run->record.cancel_requested) {
    if (!contract::IsTerminal(run->record.state)) AskCancel(*run, step);
    return;
  }
  if (asked.status.ok()) {
    run->told_held = asked.held;
    return AskHold(*run, step);
  }
  if (run->record.state != v1::RUN_STATE_PENDING) return;
  SetDue(*run, step.now + options_.cancel_interval);
  const std::string error(ToStd(asked.status.message()));
  if (error == run->hold_error) return;
  run->hold_error = error;
  agent::v1::RunEvent event;
  *event.mutable_state_reason() =
      contract::MakeReason(v1::STATE_REASON_CODE_HOLD_NOT_TOLD,
                           {.detail = fmt::format("the cluster could not be told to {} the run: {}",
                                                  asked.held ? "hold" : "release", error)});
  *event.mutable_evidence() = AgentEvidence(step.wall, event.state_reason().message());
  *run->told.mutable_state_reason() = event.state_reason();
  Change(*run, std::move(event), run->record.state, step);
}

}  // namespace muster::agents
