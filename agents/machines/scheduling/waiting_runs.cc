#include "agents/machines/scheduling/waiting_runs.h"

namespace muster::machines {

void WaitingRuns::Push(QueuedRun run) {
  Remove(run.run_key);
  if (run.held) {
    held_[run.run_key] = std::move(run);
    return;
  }
  const Place place = PlaceOf(run);
  const auto kind = kinds_.try_emplace(Kind(run.request, run.time_limit)).first;
  auto& runs = kind->second;
  if (runs.empty() || place < runs.begin()->first) {
    if (!runs.empty()) fronts_.erase(runs.begin()->first);
    fronts_[place] = kind;
  }
  places_[run.run_key] = {kind, place};
  runs[place] = std::move(run);
}

std::optional<QueuedRun> WaitingRuns::Remove(std::string_view run_key) {
  if (const auto held = held_.find(run_key); held != held_.end()) {
    return std::move(held_.extract(held).mapped());
  }
  const auto found = places_.find(run_key);
  if (found == places_.end()) return std::nullopt;
  return Extract(found->second.first, found->second.second);
}

QueuedRun WaitingRuns::Extract(Kinds::iterator kind, Place place) {
  auto& runs = kind->second;
  const bool is_front = place == runs.begin()->first;
  QueuedRun run = std::move(runs.extract(place).mapped());
  places_.erase(run.run_key);
  if (is_front) {
    fronts_.erase(place);
    if (!runs.empty()) fronts_[runs.begin()->first] = kind;
  }
  if (runs.empty()) kinds_.erase(kind);
  return run;
}

std::vector<QueuedRun> WaitingRuns::Choose(const std::function<Choice(const QueuedRun&)>& choose) {
  std::vector<QueuedRun> taken;
  auto front = fronts_.begin();
  while (front != fronts_.end()) {
    const auto [place, kind] = *front;
    const Choice choice = choose(kind->second.begin()->second);
    if (choice == Choice::kStop) break;
    if (choice == Choice::kTake) {
      taken.push_back(Extract(kind, place));
      front = fronts_.upper_bound(place);
    } else {
      ++front;
    }
  }
  return taken;
}

}  // namespace muster::machines
