#include "broker/app/watch_hub.h"

#include <algorithm>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

WatchHub::WatchHub() : thread_([this] { Run(); }) {}

WatchHub::~WatchHub() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WatchHub::Add(const std::shared_ptr<Watcher>& watcher, absl::Span<const uint64_t> jobs) {
  const MutexLock lock(mutex_);
  if (jobs.empty()) all_.emplace(watcher.get(), watcher);
  for (const uint64_t job : jobs) by_job_[job].emplace(watcher.get(), watcher);
}

void WatchHub::Remove(const Watcher* watcher, absl::Span<const uint64_t> jobs) {
  const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
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
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && !is_due_) lock.Wait(changed_);
    if (stopping_) return;
    is_due_ = false;
    std::vector<std::weak_ptr<Watcher>> due;
    due.reserve(all_.size());
    for (const auto& [_, watcher] : all_) due.push_back(watcher);
    lock.Unlock();
    WakeInTurn(due);
    lock.Lock();
  }
}

void WatchHub::WakeInTurn(const std::vector<std::weak_ptr<Watcher>>& watchers) {
  if (watchers.empty()) return;  // the last one has left meanwhile
  const std::chrono::microseconds rest = std::min<std::chrono::microseconds>(
      kTogether * kRest, kMaxRound * kTogether / watchers.size());
  for (size_t i = 0; i < watchers.size(); ++i) {
    if (const auto watcher = watchers[i].lock()) watcher->Wake();
    if ((i + 1) % kTogether != 0 && i + 1 != watchers.size()) continue;
    MutexLock lock(mutex_);
    const auto due = std::chrono::steady_clock::now() + rest;
    while (!stopping_ && lock.WaitUntil(changed_, due)) {
    }
    if (stopping_) return;
  }
}

}  // namespace muster::broker
