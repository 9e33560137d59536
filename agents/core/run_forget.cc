// Runs of which the broker has everything: the backend cleans up after them, and the journal keeps
// them until it has.
#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::LetGo(Run& run, const Step& step) {
  run.let_go = true;
  usage_.Erase(run.key());
  if (run.call != Call::kNone) return;
  // The next process, should it have to, lets go of it as it is now.
  if (changed_.erase(run.record.order) > 0) step.out->changes.push_back(PutRun{run.record});
  leaving_[run.key()] = {.run = Handle(run), .due = absl::InfiniteFuture()};
  step.out->effects.push_back(DoForget{Handle(run)});
  SetDue(run, absl::InfiniteFuture());
  const std::string key = run.key();
  runs_.erase(key);
}

void RunTable::OnForgotten(const Forgotten& forgotten, const Step& step) {
  const auto leaving = leaving_.find(forgotten.run_key);
  // Unless the broker has assigned it anew meanwhile.
  const bool is_anew = Find(forgotten.run_key) != nullptr;
  if (!forgotten.status.ok() && !is_anew && leaving != leaving_.end()) {
    leaving->second.due = step.now + options_.cancel_interval;
    return;
  }
  if (leaving != leaving_.end()) leaving_.erase(leaving);
  if (!is_anew) step.out->changes.push_back(DeleteRun{forgotten.run_key});
}

void RunTable::ForgetAgain(const Step& step) {
  for (auto& [key, leaving] : leaving_) {
    if (leaving.due > step.now) continue;
    leaving.due = absl::InfiniteFuture();
    step.out->effects.push_back(DoForget{leaving.run});
  }
}

}  // namespace muster::agents
