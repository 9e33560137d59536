// Wakes watchers when they may look again. It carries no data: a watcher reads at its own pace what
// it sends, so a slow one costs only its place here.
//
// Those who watch all jobs are woken in turn, by a thread of the hub's own that rests between them:
// changes that come meanwhile go out together. Woken by each change, many watchers would take the
// processor for themselves.
//
// Any thread may use it. Notify runs on the effects thread.
#ifndef MUSTER_BROKER_APP_WATCH_HUB_H_
#define MUSTER_BROKER_APP_WATCH_HUB_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "broker/core/core.h"
#include "sync/mutex.h"

namespace muster::broker {

class Watcher {
 public:
  virtual ~Watcher() = default;
  // Called without locks held; must not block.
  virtual void Wake() = 0;
};

class WatchHub {
 public:
  // The thread rests so long for each watcher that it has woken. A watcher takes some 60
  // microseconds of processor time to send what has come, so that all of them together take a part
  // of a core, however many they are.
  static constexpr std::chrono::microseconds kRest{200};
  // The rests of a round take no longer than this, so that the last watcher hears of a change soon.
  static constexpr std::chrono::milliseconds kMaxRound{200};
  // The thread wakes so many between two rests, because a short rest ends late.
  static constexpr size_t kTogether = 4;

  WatchHub();
  ~WatchHub();

  // Adds a watcher. Every job wakes it if there are no `jobs`.
  void Add(const std::shared_ptr<Watcher>& watcher, absl::Span<const uint64_t> jobs);
  void Remove(const Watcher* watcher, absl::Span<const uint64_t> jobs);
  void Notify(const core::JobsChanged& changed);

 private:
  using Watchers = absl::flat_hash_map<const Watcher*, std::weak_ptr<Watcher>>;

  void Run();
  void WakeInTurn(const std::vector<std::weak_ptr<Watcher>>& watchers);

  Mutex mutex_;
  std::condition_variable changed_;
  Watchers all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Watchers> by_job_ ABSL_GUARDED_BY(mutex_);
  bool is_due_ ABSL_GUARDED_BY(mutex_) = false;  // all_ have something to look at
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_WATCH_HUB_H_
