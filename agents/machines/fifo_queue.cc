#include "agents/machines/fifo_queue.h"

#include <utility>

namespace muster::machines {

void FifoQueue::Push(QueuedRun run) {
  Remove(run.run_key);
  orders_[run.run_key] = run.order;
  runs_[run.order] = std::move(run);
}

std::optional<QueuedRun> FifoQueue::Remove(std::string_view run_key) {
  const auto found = orders_.find(run_key);
  if (found == orders_.end()) return std::nullopt;
  QueuedRun run = std::move(runs_.extract(found->second).mapped());
  orders_.erase(found);
  return run;
}

std::optional<ReadyRun> FifoQueue::PopReady(Allocator* allocator) {
  if (runs_.empty()) return std::nullopt;
  std::optional<Allocation> allocation = allocator->Allocate(runs_.begin()->second.request);
  if (!allocation.has_value()) return std::nullopt;
  ReadyRun ready = {.run = std::move(runs_.begin()->second), .allocation = std::move(*allocation)};
  runs_.erase(runs_.begin());
  orders_.erase(ready.run.run_key);
  return ready;
}

}  // namespace muster::machines
