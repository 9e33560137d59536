// Tests the estimated start of a run that comes now; the property test shows whether rounds keep to
// it.
#include "agents/machines/scheduling/queue_outlook.h"

#include "agents/machines/scheduling/cluster_queue.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/scheduling/test_hosts.h"

namespace muster::machines {
namespace {

using absl::Hours;
using absl::InfiniteDuration;
using absl::Minutes;
using absl::ZeroDuration;

class QueueOutlookTest : public ::testing::Test {
 protected:
  static QueuedRun Gpus(const std::string& run_key, uint32_t gpus,
                        absl::Duration time_limit = InfiniteDuration(), int priority = 0) {
    return {.run_key = run_key,
            .priority = priority,
            .request = {.cores = 1, .gpu_millis = gpus * kWholeGpu},
            .time_limit = time_limit};
  }
  void Submit(QueuedRun run) {
    run.order = next_order_++;
    queue_.Push(std::move(run));
  }
  void SubmitHeld(QueuedRun run) {
    run.held = true;
    Submit(std::move(run));
  }
  void Round() { queue_.Round(now_); }
  absl::Duration Wait(const QueuedRun& run) const {
    return WaitOf(run, queue_.outlook(), queue_.ledger(), queue_.occupants(), now_);
  }
  // Three of four GPUs are in use for two hours, and a run waits for all, and for eight cores.
  void BlockLargeRun(int priority = 0) {
    Submit(Gpus("first", 3, Hours(2)));
    Round();
    QueuedRun large = Gpus("large", 4, InfiniteDuration(), priority);
    large.request.cores = 8;
    Submit(std::move(large));
    Round();
    ASSERT_EQ(queue_.blocked()->run.run_key, "large");
  }

  absl::Time now_ = absl::UnixEpoch();
  ClusterQueue queue_{{Host("a", 64, {"h100", "h100", "h100", "h100"})}};
  uint64_t next_order_ = 1;
};

TEST_F(QueueOutlookTest, AHeldRunWaitsBeforeNobody) {
  SubmitHeld(Gpus("held", 4));
  EXPECT_EQ(Wait(Gpus("new", 4)), ZeroDuration()) << "before any round, too";
  Round();
  EXPECT_EQ(queue_.outlook().waiting, 0u);
  EXPECT_EQ(Wait(Gpus("new", 4)), ZeroDuration());
  Submit(Gpus("running", 1, Hours(1)));
  Round();
  EXPECT_EQ(Wait(Gpus("new", 4)), Hours(1));
}

TEST_F(QueueOutlookTest, OneThatIsGoneInTimePassesTheBlockedRunAndALongerOneDoesNot) {
  BlockLargeRun();
  EXPECT_EQ(Wait(Gpus("short", 1, Hours(2))), ZeroDuration());
  EXPECT_EQ(Wait(Gpus("long", 1, Hours(3))), InfiniteDuration());
  EXPECT_EQ(Wait(Gpus("endless", 1)), InfiniteDuration());
  EXPECT_EQ(Wait(Gpus("too large", 2, Hours(1))), InfiniteDuration());
  now_ += Minutes(1);
  EXPECT_EQ(Wait(Gpus("short", 1, Hours(2))), InfiniteDuration()) << "it would end too late now";
}

TEST_F(QueueOutlookTest, WhatTheBlockedRunDoesNotNeedIsFreeForAnyTime) {
  BlockLargeRun();
  EXPECT_EQ(Wait({.run_key = "beside", .request = {.cores = 56}}), ZeroDuration());
  EXPECT_EQ(Wait({.run_key = "too much", .request = {.cores = 57}}), InfiniteDuration());
}

TEST_F(QueueOutlookTest, OneOfAHigherPriorityTakesWhatIsFreeAndOneOfALowerOnlyPasses) {
  BlockLargeRun(/*priority=*/5);
  EXPECT_EQ(Wait(Gpus("higher", 1, InfiniteDuration(), 6)), ZeroDuration());
  EXPECT_EQ(Wait(Gpus("alike", 1, InfiniteDuration(), 5)), InfiniteDuration());
  EXPECT_EQ(Wait(Gpus("lower", 1, InfiniteDuration(), 4)), InfiniteDuration());
  EXPECT_EQ(Wait(Gpus("higher and large", 2, Hours(1), 6)), InfiniteDuration());
}

TEST_F(QueueOutlookTest, TheBlockedRunMayBePassedByAnyOneForItsFirstMinutes) {
  Submit(Gpus("endless", 3));
  Submit(Gpus("large", 4));
  Round();
  EXPECT_EQ(Wait(Gpus("new", 1)), ZeroDuration());
  now_ += kFreePassing;
  EXPECT_EQ(Wait(Gpus("new", 1)), InfiniteDuration());
  EXPECT_EQ(Wait(Gpus("with a limit", 1, Hours(24))), ZeroDuration());
}

TEST_F(QueueOutlookTest, OneThatNeedsHostsThatAreDownIsInNobodysWay) {
  queue_.SetState(0, HostState::kDown);
  Submit(Gpus("waiting", 1));
  Round();
  EXPECT_EQ(Wait(Gpus("new", 1)), InfiniteDuration());
  queue_ = ClusterQueue({Host("a", 64, {"h100", "h100"}), Host("b", 64, {"h100", "h100"})});
  queue_.SetState(1, HostState::kDown);
  Submit({.run_key = "gang", .request = {.nodes = 2, .cores = 64}});
  Round();
  EXPECT_EQ(Wait(Gpus("new", 2)), ZeroDuration());
}

TEST_F(QueueOutlookTest, NobodyKnowsBeforeARoundHasLookedAtAllThatWaits) {
  BlockLargeRun();
  const QueuedRun passes = Gpus("short", 1, Hours(1));
  ASSERT_EQ(Wait(passes), ZeroDuration());
  Submit(Gpus("urgent", 1, Hours(9), 1));
  EXPECT_EQ(Wait(passes), InfiniteDuration()) << "one comes";
  Round();
  EXPECT_EQ(Wait(passes), InfiniteDuration()) << "it has the last one";
  queue_.Release("urgent");
  EXPECT_EQ(Wait(passes), InfiniteDuration()) << "another may take it";
  Round();
  EXPECT_EQ(Wait(passes), ZeroDuration());
  queue_.Remove("large");
  Submit(Gpus("other", 4));
  SubmitHeld(Gpus("released", 1));
  Round();
  queue_.SetHeld("released", false);
  EXPECT_EQ(Wait(passes), InfiniteDuration()) << "one is released";
  Round();
  queue_.SetState(0, HostState::kCordoned);
  queue_.SetState(0, HostState::kUp);
  EXPECT_EQ(Wait(passes), InfiniteDuration()) << "a host has come";
}

TEST_F(QueueOutlookTest, NobodyKnowsBehindARoundThatHasEndedAtItsBound) {
  constexpr uint32_t kHosts = 1000;
  std::vector<ClusterHost> hosts;
  for (uint32_t i = 0; i < kHosts; ++i) hosts.push_back(Host(std::to_string(i), 2, {}));
  queue_ = ClusterQueue(std::move(hosts));
  Submit({.run_key = "all", .request = {.nodes = kHosts, .cores = 1}, .time_limit = Hours(1)});
  Submit({.run_key = "large", .request = {.cores = 2}, .time_limit = Hours(1)});
  const QueuedRun passes = {.run_key = "new", .request = {.cores = 1}, .time_limit = Hours(1)};
  Round();
  EXPECT_EQ(Wait(passes), ZeroDuration());
  for (uint64_t i = 0; i <= kMaxBackfillLooks / kHosts; ++i) {
    Submit({.run_key = std::to_string(i), .request = {.cores = 2, .memory_bytes = i + 1}});
  }
  Round();
  EXPECT_EQ(Wait(passes), InfiniteDuration());
}

}  // namespace
}  // namespace muster::machines
