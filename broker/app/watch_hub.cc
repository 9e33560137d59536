#include "broker/app/watch_hub.h"

#include <algorithm>
#include <utility>

namespace muster::broker {

WatchHub::WatchHub() : thread_([this] { Run(); }) {}

WatchHub::~WatchHub() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WatchHub::Add(const std::shared_ptr<Watcher>& watcher, absl::Span<const uint64_t> jobs) {
  std::lock_guard lock(mutex_);
  if (jobs.empty()) all_.emplace(watcher.get(), watcher);
  for (const uint64_t job : jobs) by_job_[job].emplace(watcher.get(), watcher);
}

void WatchHub::Remove(const Watcher* watcher, absl::Span<const uint64_t> jobs) {
  std::lock_guard lock(mutex_);
  if (jobs.empty()) all_.erase(watcher);
  for (const uint64_t job : jobs) {
    const auto found = by_job_.find(job);
    if (found == by_job_.end()) continue;
    found->second.erase(watcher);
    if (found->second.empty()) by_job_.erase(found);
  }
}

void WatchHub::Notify(const core::JobsChanged& changed) {
  absl::flat_hash_map<const Watcher*, std::shared_ptr<Watcher>> due;
  bool is_for_all = false;
  {
    std::lock_guard lock(mutex_);
    if (!all_.empty()) is_for_all = !std::exchange(is_due_, true);
    if (!by_job_.empty()) {
      for (const uint64_t job : changed.jobs) {
        const auto found = by_job_.find(job);
        if (found == by_job_.end()) continue;
        for (const auto& [raw, weak] : found->second) {
          if (auto watcher = weak.lock()) due.emplace(raw, std::move(watcher));
        }
      }
    }
  }
  if (is_for_all) changed_.notify_one();
  for (const auto& [_, watcher] : due) watcher->Wake();
}

void WatchHub::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || is_due_; });
    if (stopping_) return;
    is_due_ = false;
    std::vector<std::weak_ptr<Watcher>> due;
    due.reserve(all_.size());
    for (const auto& [_, watcher] : all_) due.push_back(watcher);
    lock.unlock();
    WakeInTurn(due);
    lock.lock();
  }
}

void WatchHub::WakeInTurn(const std::vector<std::weak_ptr<Watcher>>& watchers) {
  if (watchers.empty()) return;  // the last one has left meanwhile
  const std::chrono::microseconds rest = std::min<std::chrono::microseconds>(
      kTogether * kRest, kMaxRound * kTogether / watchers.size());
  for (size_t i = 0; i < watchers.size(); ++i) {
    if (const auto watcher = watchers[i].lock()) watcher->Wake();
    if ((i + 1) % kTogether != 0 && i + 1 != watchers.size()) continue;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, rest, [this] { return stopping_; })) return;
  }
}

}  // namespace muster::broker
