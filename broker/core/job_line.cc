#include "broker/core/job_line.h"

#include <algorithm>

namespace muster::core {
namespace {

// Below this many marks a sweep is not worth its time.
constexpr size_t kSweepAt = 64;

}  // namespace

void JobLine::Push(Turn turn) {
  ++size_;
  // It is back before its mark was swept.
  if (removed_.erase(turn) > 0) return;
  std::deque<uint64_t>& line = lines_[turn.priority];
  if (line.empty() || line.back() < turn.job) {
    line.push_back(turn.job);
  } else {
    line.insert(std::lower_bound(line.begin(), line.end(), turn.job), turn.job);
  }
}

void JobLine::Remove(Turn turn) {
  --size_;
  removed_.insert(turn);
  DropRemovedFront();
  if (removed_.size() >= kSweepAt && removed_.size() > size_) Sweep();
}

Turn JobLine::front() const {
  const auto& [priority, line] = *lines_.begin();
  return {priority, line.front()};
}

void JobLine::DropRemovedFront() {
  while (!lines_.empty()) {
    auto& [priority, line] = *lines_.begin();
    while (!line.empty() && removed_.erase(Turn{priority, line.front()}) > 0) line.pop_front();
    if (!line.empty()) return;
    lines_.erase(lines_.begin());
  }
}

void JobLine::Sweep() {
  for (auto it = lines_.begin(); it != lines_.end();) {
    std::erase_if(it->second, [this, priority = it->first](uint64_t job) {
      return removed_.contains(Turn{priority, job});
    });
    it = it->second.empty() ? lines_.erase(it) : std::next(it);
  }
  removed_.clear();
}

}  // namespace muster::core
