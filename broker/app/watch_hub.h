// Wakes watchers when they may look again. It carries no data: a watcher reads at its own pace what
// it sends, so a slow one costs only its place here.
//
// Any thread; Notify runs on the effects thread.
#ifndef MUSTER_BROKER_APP_WATCH_HUB_H_
#define MUSTER_BROKER_APP_WATCH_HUB_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "broker/core/core.h"

namespace muster::broker {

class Watcher {
 public:
  virtual ~Watcher() = default;
  // Called without locks held; must not block.
  virtual void Wake() = 0;
};

class WatchHub {
 public:
  // Without `jobs` the watcher is woken by every job.
  void Add(const std::shared_ptr<Watcher>& watcher, absl::Span<const uint64_t> jobs);
  void Remove(const Watcher* watcher, absl::Span<const uint64_t> jobs);
  void Notify(const core::JobsChanged& changed);

 private:
  using Watchers = absl::flat_hash_map<const Watcher*, std::weak_ptr<Watcher>>;

  std::mutex mutex_;
  Watchers all_;
  absl::flat_hash_map<uint64_t, Watchers> by_job_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_WATCH_HUB_H_
