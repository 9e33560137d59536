#include "agents/machines/run_queue.h"

#include <utility>

namespace muster::machines {

void RunQueue::Push(QueuedRun run) {
  Remove(run.run_key);
  if (run.held) {
    held_[run.run_key] = std::move(run);
    return;
  }
  const Place place = PlaceOf(run);
  places_[run.run_key] = place;
  runs_[place] = std::move(run);
}

std::optional<QueuedRun> RunQueue::Remove(std::string_view run_key) {
  const auto found = places_.find(run_key);
  if (found == places_.end()) {
    const auto held = held_.find(run_key);
    if (held == held_.end()) return std::nullopt;
    return std::move(held_.extract(held).mapped());
  }
  QueuedRun run = std::move(runs_.extract(found->second).mapped());
  places_.erase(found);
  return run;
}

bool RunQueue::SetHeld(std::string_view run_key, bool held) {
  std::optional<QueuedRun> run = Remove(run_key);
  if (!run.has_value()) return false;
  run->held = held;
  Push(*std::move(run));
  return true;
}

std::optional<ReadyRun> RunQueue::PopReady(Allocator* allocator) {
  if (runs_.empty()) return std::nullopt;
  std::optional<Allocation> allocation = allocator->Allocate(runs_.begin()->second.request);
  if (!allocation.has_value()) return std::nullopt;
  ReadyRun ready = {.run = std::move(runs_.begin()->second), .allocation = std::move(*allocation)};
  runs_.erase(runs_.begin());
  places_.erase(ready.run.run_key);
  return ready;
}

}  // namespace muster::machines
