#include "agents/core/lease_lane.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <vector>

#include "absl/time/clock.h"

namespace muster::agents {
namespace {

// A cluster whose answers the test gives.
class LeaseLaneTest : public testing::Test {
 protected:
  absl::Status Renew(absl::Duration remaining) {
    MutexLock lock(mutex_);
    calls_.push_back(remaining);
    changed_.notify_all();
    while (allowed_ == 0) lock.Wait(changed_);
    --allowed_;
    return std::exchange(fails_, false) ? absl::UnavailableError("away") : absl::OkStatus();
  }
  void Allow(int calls, bool fails = false) {
    const MutexLock lock(mutex_);
    allowed_ += calls;
    fails_ = fails;
    changed_.notify_all();
  }
  void AwaitCalls(size_t count) {
    MutexLock lock(mutex_);
    while (calls_.size() < count) lock.Wait(changed_);
  }
  void AwaitLive() {
    while (!lane_.AreLive()) absl::SleepFor(absl::Milliseconds(1));
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<absl::Duration> calls_ ABSL_GUARDED_BY(mutex_);
  int allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool fails_ ABSL_GUARDED_BY(mutex_) = false;
  LeaseLane lane_{[this](absl::Duration remaining) { return Renew(remaining); },
                  [this] { return now_; }};
};

TEST_F(LeaseLaneTest, LeasesAreLiveOnceTheClusterKnowsOfThem) {
  EXPECT_FALSE(lane_.AreLive());
  lane_.Renew(now_ + absl::Minutes(1));
  AwaitCalls(1);
  EXPECT_FALSE(lane_.AreLive());
  Allow(1);
  AwaitLive();
  const MutexLock lock(mutex_);
  EXPECT_EQ(calls_[0], absl::Minutes(1));
}

TEST_F(LeaseLaneTest, TheNewestOfThoseThatWaitWins) {
  lane_.Renew(now_ + absl::Minutes(1));
  AwaitCalls(1);
  lane_.Renew(now_ + absl::Minutes(2));
  lane_.Renew(now_ + absl::Minutes(3));
  Allow(2);
  AwaitCalls(2);
  AwaitLive();
  const MutexLock lock(mutex_);
  EXPECT_EQ(calls_[1], absl::Minutes(3));
}

TEST_F(LeaseLaneTest, AFailureIsTriedAgain) {
  lane_.Renew(now_ + absl::Minutes(1));
  Allow(1, /*fails=*/true);
  AwaitCalls(2);
  EXPECT_FALSE(lane_.AreLive());
  Allow(1);
  AwaitLive();
}

TEST_F(LeaseLaneTest, ARenewalThatIsOverIsNotMade) {
  lane_.Renew(now_);
  lane_.Renew(now_ + absl::Minutes(1));
  Allow(1);
  AwaitLive();
  const MutexLock lock(mutex_);
  EXPECT_EQ(calls_.size(), 1u);
}

}  // namespace
}  // namespace muster::agents
