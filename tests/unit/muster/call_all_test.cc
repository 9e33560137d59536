#include "agents/muster/call_all.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <vector>

#include "gtest/gtest.h"
#include "sync/mutex.h"

namespace muster::remote {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);

// Lets nobody pass before so many have come, or a minute is over.
class Gathering {
 public:
  explicit Gathering(size_t expected) : expected_(expected) {}

  bool Join() {
    MutexLock lock(mutex_);
    ++here_;
    most_ = std::max(most_, here_);
    all_.notify_all();
    const auto due = std::chrono::steady_clock::now() + kPatience;
    while (most_ < expected_ && lock.WaitUntil(all_, due)) {
    }
    --here_;
    return most_ >= expected_;
  }
  size_t most() const {
    const MutexLock lock(mutex_);
    return most_;
  }

 private:
  const size_t expected_;
  mutable Mutex mutex_;
  std::condition_variable all_;
  size_t here_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(CallAll, EachIsCalledOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, kMaxCallsAtOnce, size_t{1000}}) {
    std::vector<std::atomic<int>> calls(count);
    CallAll(count, [&](size_t i) { ++calls[i]; });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
  }
}

TEST(CallAll, AsManyAsAllowedAreMadeAtTheSameTime) {
  Gathering gathering(kMaxCallsAtOnce);
  std::atomic<int> alone = 0;
  CallAll(5 * kMaxCallsAtOnce, [&](size_t) {
    if (!gathering.Join()) ++alone;
  });
  EXPECT_EQ(alone, 0);
  EXPECT_EQ(gathering.most(), kMaxCallsAtOnce);
}

// Takes all memory that a thread's stack could have, and makes the calls.
[[noreturn]] void CallAllWithoutThreads() {
  rlimit none{.rlim_cur = 1, .rlim_max = 1};
  std::vector<std::atomic<int>> calls(kMaxCallsAtOnce);
  if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
  CallAll(calls.size(), [&](size_t i) { ++calls[i]; });
  _exit(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }) ? 0 : 1);
}

TEST(CallAllDeathTest, AllCallsAreMadeWhenTheSystemGivesNoThreads) {
  // The program starts anew for it: stacks of earlier threads would be taken again.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CallAllWithoutThreads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster::remote
