// Has the backend clean up after runs of which the broker has the end and the logs, and after those
// that it does not want. The journal keeps them until it has, and until their usage is told or
// given up.
#include <utility>

#include "agents/core/run_table.h"

namespace muster::agents {

void RunTable::LetGo(Run& run, const Step& step) {
  run.let_go = true;
  if (run.call != Call::kNone) return;
  // The next process, should it have to, lets go of it as it is now.
  if (changed_.erase(run.record.order) > 0) step.out->changes.push_back(PutRun{run.record});
  SetDue(run, absl::InfiniteFuture());
  step.out->effects.push_back(DoForget{Handle(run)});
  auto leaving = runs_.extract(run.key());
  leaving_[leaving.key()] = {.run = std::move(leaving.mapped()), .due = absl::InfiniteFuture()};
}

void RunTable::OnForgotten(const Forgotten& forgotten, const Step& step) {
  const auto leaving = leaving_.find(forgotten.run_key);
  if (leaving == leaving_.end()) return;  // the broker has assigned it anew meanwhile
  if (!forgotten.status.ok()) {
    leaving->second.due = step.now + options_.cancel_interval;
    return;
  }
  leaving->second.is_forgotten = true;
  DropIfDone(forgotten.run_key, step);
}

void RunTable::DropIfDone(const std::string& run_key, const Step& step) {
  const auto leaving = leaving_.find(run_key);
  if (leaving == leaving_.end() || !leaving->second.is_forgotten || usage_.Contains(run_key))
    return;
  leaving_.erase(leaving);
  step.out->changes.push_back(DeleteRun{run_key});
}

void RunTable::ForgetAgain(const Step& step) {
  for (auto& [key, leaving] : leaving_) {
    if (leaving.due > step.now) continue;
    leaving.due = absl::InfiniteFuture();
    step.out->effects.push_back(DoForget{Handle(leaving.run)});
  }
}

}  // namespace muster::agents
