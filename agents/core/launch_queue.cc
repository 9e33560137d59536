#include "agents/core/launch_queue.h"

#include <utility>

namespace muster::agents {

LaunchQueue::LaunchQueue(int max_launches, int max_with_files)
    : lines_{Line{.max_launches = max_launches}, Line{.max_launches = max_with_files}} {}

void LaunchQueue::Add(uint64_t order, const std::string& run_key, bool has_files) {
  LineOf(has_files).waiting.emplace(order, run_key);
}

void LaunchQueue::Erase(uint64_t order) {
  for (Line& line : lines_) line.waiting.erase(order);
}

bool LaunchQueue::Contains(uint64_t order) const {
  return lines_[0].waiting.contains(order) || lines_[1].waiting.contains(order);
}

size_t LaunchQueue::size() const { return lines_[0].waiting.size() + lines_[1].waiting.size(); }

int LaunchQueue::launches() const { return lines_[0].launches + lines_[1].launches; }

std::optional<std::string> LaunchQueue::Take() {
  Line* next = nullptr;
  for (Line& line : lines_) {
    const bool is_first = next == nullptr || (line.has_next() && line.waiting.begin()->first <
                                                                     next->waiting.begin()->first);
    if (line.has_next() && is_first) next = &line;
  }
  if (next == nullptr) return std::nullopt;
  std::string run_key = std::move(next->waiting.begin()->second);
  next->waiting.erase(next->waiting.begin());
  return run_key;
}

}  // namespace muster::agents
