#include "broker/app/watch_hub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace muster::broker {
namespace {

using Clock = std::chrono::steady_clock;

class CountingWatcher : public Watcher {
 public:
  void Wake() override {
    std::lock_guard lock(mutex_);
    ++wakes_;
    changed_.notify_all();
  }
  void Await(int wakes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return wakes_ >= wakes; });
  }
  int wakes() const {
    std::lock_guard lock(mutex_);
    return wakes_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int wakes_ = 0;
};

// Adds so many who watch all jobs.
std::vector<std::shared_ptr<CountingWatcher>> AddWatchers(int count, WatchHub& hub) {
  std::vector<std::shared_ptr<CountingWatcher>> watchers;
  for (int i = 0; i < count; ++i) {
    watchers.push_back(std::make_shared<CountingWatcher>());
    hub.Add(watchers.back(), {});
  }
  return watchers;
}

TEST(WatchHub, WakesThoseWhoWatchTheJobAndThoseWhoWatchAll) {
  WatchHub hub;
  const auto all = std::make_shared<CountingWatcher>();
  const auto of_1 = std::make_shared<CountingWatcher>();
  const auto of_2 = std::make_shared<CountingWatcher>();
  hub.Add(all, {});
  hub.Add(of_1, {1});
  hub.Add(of_2, {2});
  hub.Notify({{1}, 7});
  all->Await(1);
  of_1->Await(1);
  EXPECT_EQ(of_2->wakes(), 0);
  hub.Remove(of_1.get(), {1});
  hub.Notify({{1}, 8});
  all->Await(2);
  EXPECT_EQ(of_1->wakes(), 1);
}

TEST(WatchHub, ChangesThatFollowOneAnotherWakeManyWatchersTogether) {
  constexpr int kWatchers = 100;
  WatchHub hub;
  const auto watchers = AddWatchers(kWatchers, hub);
  const auto start = Clock::now();
  for (uint64_t i = 1; i <= 10'000; ++i) hub.Notify({{i}, i});
  for (const auto& watcher : watchers) watcher->Await(1);
  int most = 0;
  for (const auto& watcher : watchers) most = std::max(most, watcher->wakes());
  // At most so many rounds have ended, and one may go on.
  const auto rounds = (Clock::now() - start) / (kWatchers * WatchHub::kRest);
  EXPECT_LE(most, rounds + 1);
}

TEST(WatchHub, AChangeDuringARoundBringsAnotherRound) {
  WatchHub hub;
  const auto watchers = AddWatchers(100, hub);
  hub.Notify({{1}, 1});
  for (const auto& watcher : watchers) watcher->Await(1);
  hub.Notify({{2}, 2});
  for (const auto& watcher : watchers) watcher->Await(2);
}

TEST(WatchHub, TheLastWatcherMayLeaveBeforeItIsWoken) {
  for (int i = 0; i < 1000; ++i) {
    WatchHub hub;
    const auto watcher = std::make_shared<CountingWatcher>();
    hub.Add(watcher, {});
    hub.Notify({{1}, 1});
    hub.Remove(watcher.get(), {});
    const auto next = std::make_shared<CountingWatcher>();
    hub.Add(next, {});
    hub.Notify({{1}, 2});
    next->Await(1);
  }
}

TEST(WatchHub, EndsInTheMiddleOfARound) {
  constexpr int kWatchers = 1000;
  const auto counter = std::make_shared<CountingWatcher>();
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    WatchHub hub;
    for (int i = 0; i < kWatchers; ++i) {
      // All share the counter and have addresses of their own.
      struct One : Watcher {
        explicit One(std::shared_ptr<CountingWatcher> to) : to(std::move(to)) {}
        void Wake() override { to->Wake(); }
        std::shared_ptr<CountingWatcher> to;
      };
      watchers.push_back(std::make_shared<One>(counter));
      hub.Add(watchers.back(), {});
    }
    hub.Notify({{1}, 1});
    counter->Await(1);
  }
  EXPECT_LT(counter->wakes(), kWatchers);
}

}  // namespace
}  // namespace muster::broker
