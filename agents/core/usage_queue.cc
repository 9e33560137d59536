#include "agents/core/usage_queue.h"

#include <algorithm>

#include "agents/core/backend.h"

namespace muster::agents {

void UsageQueue::Add(const std::string& run_key, absl::Time now) {
  if (waits_.size() >= kMaxAwaitedUsages) return;
  const Wait wait{.until = now + kUsagePatience, .due = now + kUsageLag, .pause = kUsageInterval};
  if (waits_.emplace(run_key, wait).second) due_.emplace(wait.due, run_key);
}

void UsageQueue::Erase(const std::string& run_key) {
  const auto found = waits_.find(run_key);
  if (found == waits_.end()) return;
  due_.erase({found->second.due, run_key});
  waits_.erase(found);
}

std::vector<std::string> UsageQueue::TakeDue(absl::Time now) {
  if (is_asking_ || now < next_) return {};
  while (!due_.empty() && due_.begin()->first <= now && asked_.size() < kMaxUsageBatch) {
    asked_.push_back(due_.begin()->second);
    due_.erase(due_.begin());
  }
  is_asking_ = !asked_.empty();
  return asked_;
}

std::vector<std::string> UsageQueue::Answered(absl::Time now, absl::Duration pause) {
  std::vector<std::string> given_up;
  for (const std::string& key : asked_) {
    const auto found = waits_.find(key);
    if (found == waits_.end()) continue;
    Wait& wait = found->second;
    if (now >= wait.until) {
      waits_.erase(found);
      given_up.push_back(key);
      continue;
    }
    wait.due = std::min(now + wait.pause, wait.until);
    wait.pause *= 2;
    due_.emplace(wait.due, key);
  }
  asked_.clear();
  is_asking_ = false;
  next_ = now + pause;
  return given_up;
}

std::vector<std::string> UsageQueue::TakeAll() {
  std::vector<std::string> all;
  for (const auto& [key, wait] : waits_) all.push_back(key);
  waits_.clear();
  due_.clear();
  return all;
}

}  // namespace muster::agents
