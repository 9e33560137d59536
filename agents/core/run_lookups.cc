// Looks up runs of which nobody knows whether their cluster has them, until that is clear, and
// fences them if they are to end.
#include <algorithm>
#include <utility>

#include "agents/core/run_events.h"
#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::AskLookup(Run& run, const Step& step) {
  SetDue(run, absl::InfiniteFuture());
  run.call = Call::kLookup;
  run.asked = step.now;
  step.out->effects.push_back(DoLookup{Handle(run)});
}

void RunTable::AskFence(Run& run, const Step& step) {
  run.call = Call::kFence;
  step.out->effects.push_back(DoFence{Handle(run)});
}

void RunTable::OnLookedUp(LookedUp looked_up, const Step& step) {
  Run* run = Settle(looked_up.run_key, Call::kLookup);
  if (run == nullptr) return;
  LookupOutcome& outcome = looked_up.outcome;
  v1::Evidence evidence = Completed(std::move(outcome.evidence), step.wall);
  switch (outcome.kind) {
    case LookupOutcome::Kind::kFound:
      Adopt(*run, outcome.external_id, std::move(evidence), step);
      return;
    case LookupOutcome::Kind::kAbsent:
      OnAbsent(*run, std::move(evidence), step);
      return;
    case LookupOutcome::Kind::kCouldNotAsk:
      run->absent_since = absl::InfiniteFuture();
      if (run->record.state == v1::RUN_STATE_LAUNCH_UNKNOWN)
        TellWhy(*run, v1::STATE_REASON_CODE_LAUNCH_UNKNOWN, std::move(evidence), step);
      SetDue(*run, step.now + options_.lookup_interval);
      return;
  }
}

void RunTable::OnAbsent(Run& run, v1::Evidence evidence, const Step& step) {
  // The time counts from the first answer to the last question: the scheduler has been asked over
  // the whole of the grace period, however long an answer took.
  const bool is_grace_over = run.asked - run.absent_since >= options_.lookup_grace;
  const bool is_to_end = run.record.cancel_requested;
  run.absent_since = std::min(run.absent_since, step.now);
  if (draining_ || (!has_broker_spoken_ && !is_to_end))
    return SetDue(run, step.now + options_.lookup_interval);
  if (is_grace_over && is_to_end) {
    EndUnlaunched(run, EventWith(std::move(evidence)), v1::RUN_STATE_CANCELED, step);
  } else if (is_grace_over) {
    LaunchAgain(run, step);
  } else if (is_to_end && !run.cannot_be_fenced) {
    AskFence(run, step);
  } else {
    SetDue(run, step.now + options_.lookup_interval);
  }
}

// The proof that it never begins spares the grace. A run that has ended meanwhile was there after
// all: the next look-up finds it, and its end is told as it was.
void RunTable::OnFenced(Fenced fenced, const Step& step) {
  Run* run = Settle(fenced.run_key, Call::kFence);
  if (run == nullptr) return;
  if (fenced.outcome.kind == FenceOutcome::Kind::kNeverBegins) {
    v1::Evidence evidence = Completed(std::move(fenced.outcome.evidence), step.wall);
    return EndUnlaunched(*run, EventWith(std::move(evidence)), v1::RUN_STATE_CANCELED, step);
  }
  run->cannot_be_fenced = fenced.outcome.kind == FenceOutcome::Kind::kImpossible;
  SetDue(*run, step.now + options_.lookup_interval);
}

}  // namespace muster::agents
