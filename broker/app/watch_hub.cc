#include "broker/app/watch_hub.h"

namespace muster::broker {

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
  {
    std::lock_guard lock(mutex_);
    const auto add = [&due](const Watchers& watchers) {
      for (const auto& [raw, weak] : watchers) {
        if (auto watcher = weak.lock()) due.emplace(raw, std::move(watcher));
      }
    };
    add(all_);
    if (!by_job_.empty()) {
      for (const uint64_t job : changed.jobs) {
        if (const auto found = by_job_.find(job); found != by_job_.end()) add(found->second);
      }
    }
  }
  for (const auto& [_, watcher] : due) watcher->Wake();
}

}  // namespace muster::broker
