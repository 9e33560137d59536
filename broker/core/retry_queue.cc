#include "broker/core/retry_queue.h"

namespace muster::core {

void RetryQueue::Add(uint64_t job, int64_t time) {
  order_.emplace(time, job);
  times_.emplace(job, time);
}

void RetryQueue::Remove(uint64_t job) {
  const auto found = times_.find(job);
  if (found == times_.end()) return;
  order_.erase({found->second, job});
  times_.erase(found);
}

std::optional<int64_t> RetryQueue::TimeOf(uint64_t job) const {
  const auto found = times_.find(job);
  if (found == times_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint64_t> RetryQueue::TakeDue(int64_t now) {
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  const uint64_t job = order_.begin()->second;
  Remove(job);
  return job;
}

void RetryQueue::Shift(int64_t by) {
  order_.clear();
  for (auto& [job, time] : times_) {
    time += by;
    order_.emplace(time, job);
  }
}

}  // namespace muster::core
