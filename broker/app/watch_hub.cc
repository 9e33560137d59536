#include "broker/app/watch_hub.h"

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

void WatchHub::Collect(const Watchers& watchers, Due* due) {
  for (const auto& [raw, weak] : watchers) {
    if (auto watcher = weak.lock()) due->emplace(raw, std::move(watcher));
  }
}

void WatchHub::Notify(const core::JobsChanged& changed) {
  Due due;
  bool is_for_all = false;
  {
    std::lock_guard lock(mutex_);
    if (!all_.empty()) is_for_all = !std::exchange(is_due_, true);
    if (!by_job_.empty()) {
      for (const uint64_t job : changed.jobs) {
        if (const auto found = by_job_.find(job); found != by_job_.end())
          Collect(found->second, &due);
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
    Due due;
    Collect(all_, &due);
    lock.unlock();
    WakeInTurn(due);
    due.clear();
    lock.lock();
  }
}

void WatchHub::WakeInTurn(const Due& due) {
  size_t woken = 0;
  for (const auto& [_, watcher] : due) {
    watcher->Wake();
    if (++woken % kTogether != 0 && woken != due.size()) continue;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kTogether * kRest, [this] { return stopping_; })) return;
  }
}

}  // namespace muster::broker
