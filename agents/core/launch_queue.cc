#include "agents/core/launch_queue.h"

#include <utility>

namespace muster::agents {

LaunchQueue::LaunchQueue(int max_launches, int max_with_files)
    : lines_{Line{.max_launches = max_launches}, Line{.max_launches = max_with_files}} {}

void LaunchQueue::Add(uint64_t order, const std::string& run_key, bool has_files) {
  AddTogether({{order, run_key}}, has_files);
}

void LaunchQueue::AddTogether(std::map<uint64_t, std::string> runs, bool has_files) {
  const uint64_t first = runs.begin()->first;
  for (const auto& [order, key] : runs) first_of_.emplace(order, first);
  LineOf(has_files).waiting.emplace(first, std::move(runs));
}

void LaunchQueue::Erase(uint64_t order) {
  const auto found = first_of_.find(order);
  if (found == first_of_.end()) return;
  for (Line& line : lines_) {
    const auto together = line.waiting.find(found->second);
    if (together == line.waiting.end()) continue;
    together->second.erase(order);
    if (together->second.empty()) line.waiting.erase(together);
  }
  first_of_.erase(found);
}

bool LaunchQueue::Contains(uint64_t order) const { return first_of_.contains(order); }

size_t LaunchQueue::size() const { return first_of_.size(); }

int LaunchQueue::launches() const { return lines_[0].launches + lines_[1].launches; }

std::vector<std::string> LaunchQueue::Take() {
  Line* next = nullptr;
  for (Line& line : lines_) {
    const bool is_first = next == nullptr || (line.has_next() && line.waiting.begin()->first <
                                                                     next->waiting.begin()->first);
    if (line.has_next() && is_first) next = &line;
  }
  if (next == nullptr) return {};
  std::vector<std::string> keys;
  for (auto& [order, key] : next->waiting.begin()->second) {
    first_of_.erase(order);
    keys.push_back(std::move(key));
  }
  next->waiting.erase(next->waiting.begin());
  return keys;
}

}  // namespace muster::agents
