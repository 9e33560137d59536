// Tests the order of starts: reservations and what may pass them.
#include "agents/machines/scheduling/cluster_queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/scheduling/test_hosts.h"

namespace muster::machines {
namespace {

using absl::Hours;
using absl::InfiniteDuration;
using absl::Minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ClusterQueueTest : public ::testing::Test {
 protected:
  void UseHosts(std::vector<ClusterHost> hosts) { queue_.emplace(std::move(hosts)); }
  // Makes a machine with four GPUs, and cores and memory enough.
  void UseFourGpus() { UseHosts({Host("a", 64, {"h100", "h100", "h100", "h100"})}); }

  void Submit(const std::string& run_key, const Request& request,
              absl::Duration time_limit = InfiniteDuration(), int priority = 0) {
    queue_->Push({.run_key = run_key,
                  .priority = priority,
                  .order = next_order_++,
                  .request = request,
                  .time_limit = time_limit});
  }
  void SubmitGpus(const std::string& run_key, uint32_t gpus,
                  absl::Duration time_limit = InfiniteDuration(), int priority = 0) {
    Submit(run_key, {.cores = 1, .gpu_millis = gpus * kWholeGpu}, time_limit, priority);
  }
  // Returns the keys of those that start.
  std::vector<std::string> Round() {
    std::vector<std::string> keys;
    for (const ReadyRun& ready : queue_->Round(now_)) keys.push_back(ready.run.run_key);
    return keys;
  }
  std::vector<std::string> End(const std::string& run_key) {
    queue_->Release(run_key);
    return Round();
  }
  std::string Blocked() const {
    return queue_->blocked().has_value() ? queue_->blocked()->run.run_key : "";
  }

  absl::Time now_ = absl::UnixEpoch();
  std::optional<ClusterQueue> queue_;
  uint64_t next_order_ = 1;
};

TEST_F(ClusterQueueTest, TheFiveJobsOfSkyPilotsDocumentsStartInTheOrderDocumentedThere) {
  UseFourGpus();
  SubmitGpus("job1", 4);
  EXPECT_THAT(Round(), ElementsAre("job1"));
  SubmitGpus("job2", 1);
  SubmitGpus("job3", 1);
  SubmitGpus("job4", 4);
  SubmitGpus("job5", 2);
  EXPECT_THAT(Round(), IsEmpty());
  now_ += Hours(1);
  EXPECT_THAT(End("job1"), ElementsAre("job2", "job3", "job5"));
  EXPECT_EQ(Blocked(), "job4");
  now_ += Hours(1);
  EXPECT_THAT(End("job2"), IsEmpty());
  EXPECT_THAT(End("job3"), IsEmpty());
  EXPECT_THAT(End("job5"), ElementsAre("job4"));
}

TEST_F(ClusterQueueTest, AStreamOfSmallRunsWithoutLimitsDoesNotStarveALargeOne) {
  // Two small ones are always running, and overlap; plain backfill never gets all GPUs free.
  UseFourGpus();
  SubmitGpus("small0", 2);
  SubmitGpus("small1", 2);
  EXPECT_THAT(Round(), ElementsAre("small0", "small1"));
  SubmitGpus("large", 4);
  bool large_runs = false;
  int passed = 0;
  for (int i = 2; i < 100 && !large_runs; ++i) {
    now_ += Minutes(2);
    SubmitGpus("small" + std::to_string(i), 2);
    const std::vector<std::string> started = End("small" + std::to_string(i - 2));
    for (const std::string& run_key : started) {
      large_runs = large_runs || run_key == "large";
      passed += run_key != "large" ? 1 : 0;
    }
  }
  EXPECT_TRUE(large_runs);
  EXPECT_GE(passed, 1) << "GPUs stood idle before it had waited long";
  EXPECT_LE(passed, 6) << "in ten minutes, one every two";
}

TEST_F(ClusterQueueTest, AStreamOfSmallRunsWithLimitsDoesNotDelayTheReservation) {
  UseFourGpus();
  SubmitGpus("first", 2, Minutes(60));
  EXPECT_THAT(Round(), ElementsAre("first"));
  SubmitGpus("large", 4, Minutes(60));
  const absl::Time reserved = now_ + Minutes(60);
  for (int i = 0; i < 6; ++i) {
    const std::string run_key = "small" + std::to_string(i);
    SubmitGpus(run_key, 2, Minutes(11));
    const bool fits_before = now_ + Minutes(11) <= reserved;
    EXPECT_EQ(Round().size(), fits_before ? 1u : 0u) << i;
    EXPECT_EQ(queue_->blocked()->start, reserved);
    now_ += Minutes(10);
    if (now_ < reserved) {
      EXPECT_THAT(End(run_key), IsEmpty());
    }
  }
  EXPECT_EQ(now_, reserved);
  EXPECT_THAT(End("first"), ElementsAre("large"));
}

TEST_F(ClusterQueueTest, ARunThatEndsBeforeTheReservationPassesAndALongerOneDoesNot) {
  UseFourGpus();
  SubmitGpus("first", 3, Hours(2));
  SubmitGpus("large", 4);
  SubmitGpus("long", 1, Hours(3));
  SubmitGpus("endless", 1);
  SubmitGpus("short", 1, Hours(2));
  EXPECT_THAT(Round(), ElementsAre("first", "short"));
  EXPECT_EQ(queue_->blocked()->start, now_ + Hours(2));
}

TEST_F(ClusterQueueTest, ALongRunPassesWhereItLeavesTheReservationItsShare) {
  UseHosts({Host("a", 8, {"h100", "h100"}), Host("b", 8, {"h100"})});
  Submit("first", {.cores = 1, .gpu_millis = 2000}, Hours(1));
  Submit("large", {.cores = 1, .gpu_millis = 2000});
  Submit("beside", {.cores = 1, .gpu_millis = 1000});
  Submit("more", {.cores = 7});
  Submit("too much", {.cores = 8}, Hours(2));
  EXPECT_THAT(Round(), ElementsAre("first", "beside", "more"));
  EXPECT_EQ(Blocked(), "large");
}

TEST_F(ClusterQueueTest, AfterItsFirstMinutesABlockedRunIsPassedOnlyByWhatLeavesItsShareAlone) {
  UseHosts({Host("a", 8, {"h100", "h100"}), Host("b", 2, {})});
  SubmitGpus("endless", 1);
  SubmitGpus("large", 2);
  EXPECT_THAT(Round(), ElementsAre("endless"));
  EXPECT_EQ(queue_->blocked()->start, absl::InfiniteFuture());
  now_ += kFreePassing;
  SubmitGpus("in its way", 1);
  SubmitGpus("gone one day", 1, Hours(24));
  Submit("beside", {.cores = 2});
  EXPECT_THAT(Round(), ElementsAre("gone one day", "beside"));
  EXPECT_THAT(End("endless"), IsEmpty());
  EXPECT_EQ(queue_->blocked()->start, now_ + Hours(24)) << "now somebody knows";
  EXPECT_THAT(End("gone one day"), ElementsAre("large"));
}

TEST_F(ClusterQueueTest, ItsFirstMinutesAreCountedOnWhenTheHostsChange) {
  UseHosts({Host("a", 8, {"h100", "h100"})});
  SubmitGpus("endless", 1);
  SubmitGpus("large", 2);
  EXPECT_THAT(Round(), ElementsAre("endless"));
  const Allocation allocation = queue_->occupants().begin()->second.allocation;
  now_ += kFreePassing;
  queue_->StartOver({Host("a", 8, {"h100", "h100"}), Host("b", 2, {})});
  queue_->Restore("endless", allocation, absl::InfiniteFuture());
  SubmitGpus("in its way", 1);
  Submit("beside", {.cores = 2});
  EXPECT_THAT(Round(), ElementsAre("beside"));
}

TEST_F(ClusterQueueTest, ARunOverItsLimitIsAboutToEndAndNobodyPassesInTheMeantime) {
  UseFourGpus();
  SubmitGpus("first", 3, Minutes(1));
  SubmitGpus("large", 4);
  EXPECT_THAT(Round(), ElementsAre("first"));
  now_ += Minutes(2);
  SubmitGpus("short", 1, Minutes(1));
  EXPECT_THAT(Round(), IsEmpty());
  EXPECT_EQ(queue_->blocked()->start, now_);
}

TEST_F(ClusterQueueTest, AHigherPriorityStartsFirstWheneverItCame) {
  UseHosts({Host("a", 1, {})});
  Submit("running", {.cores = 1});
  EXPECT_THAT(Round(), ElementsAre("running"));
  Submit("low", {.cores = 1}, InfiniteDuration(), -5);
  Submit("first", {.cores = 1});
  Submit("second", {.cores = 1});
  Submit("high", {.cores = 1}, InfiniteDuration(), 1000);
  EXPECT_THAT(End("running"), ElementsAre("high"));
  EXPECT_THAT(End("high"), ElementsAre("first"));
  EXPECT_THAT(End("first"), ElementsAre("second"));
  EXPECT_THAT(End("second"), ElementsAre("low"));
}

TEST_F(ClusterQueueTest, AHigherPriorityTakesTheReservation) {
  UseFourGpus();
  SubmitGpus("first", 3, Hours(1));
  SubmitGpus("large", 4);
  EXPECT_THAT(Round(), ElementsAre("first"));
  SubmitGpus("urgent", 4, Hours(1), 7);
  EXPECT_THAT(Round(), IsEmpty());
  EXPECT_EQ(Blocked(), "urgent");
  EXPECT_THAT(End("first"), ElementsAre("urgent"));
}

TEST_F(ClusterQueueTest, RunsOfOneKindStartInTheOrderInWhichTheyCameAmongOthers) {
  UseHosts({Host("a", 100, {})});
  for (int i = 0; i < 12; ++i) {
    Submit(std::to_string(i), {.cores = 1 + static_cast<uint32_t>(i % 3)});
  }
  EXPECT_THAT(Round(), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
}

TEST_F(ClusterQueueTest, AHeldRunStandsAsideUntilItIsReleased) {
  UseFourGpus();
  SubmitGpus("held", 4);
  SubmitGpus("next", 4);
  EXPECT_TRUE(queue_->SetHeld("held", true));
  EXPECT_EQ(queue_->held(), 1u);
  EXPECT_THAT(Round(), ElementsAre("next"));
  EXPECT_EQ(Blocked(), "");
  EXPECT_TRUE(queue_->SetHeld("held", false));
  EXPECT_THAT(End("next"), ElementsAre("held"));
  EXPECT_FALSE(queue_->SetHeld("held", true)) << "it waits no more";
}

TEST_F(ClusterQueueTest, ARunThatNeedsHostsWhichAreDownBlocksNobodyAndStartsWhenTheyAreUp) {
  UseHosts({Host("a", 8, {}), Host("b", 8, {})});
  queue_->SetState(1, HostState::kDown);
  Submit("gang", {.nodes = 2, .cores = 8}, Hours(1), 5);
  Submit("other", {.cores = 8});
  EXPECT_THAT(Round(), ElementsAre("other"));
  EXPECT_EQ(Blocked(), "gang");
  queue_->SetState(1, HostState::kUp);
  Submit("later", {.cores = 8}, Hours(1));
  EXPECT_THAT(Round(), ElementsAre("later")) << "its start is not known, and this one has a limit";
  EXPECT_THAT(End("other"), IsEmpty());
  EXPECT_THAT(End("later"), ElementsAre("gang"));
}

TEST_F(ClusterQueueTest, ARoundLooksForWhatMayPassNoLongerThanItsBound) {
  constexpr uint32_t kHosts = 1000;
  std::vector<ClusterHost> hosts;
  for (uint32_t i = 0; i < kHosts; ++i) hosts.push_back(Host(std::to_string(i), 2, {}));
  UseHosts(std::move(hosts));
  Submit("all", {.nodes = kHosts, .cores = 1}, Hours(1));
  EXPECT_THAT(Round(), ElementsAre("all"));
  Submit("large", {.cores = 2}, Hours(1));
  for (uint64_t i = 0; i < kMaxBackfillLooks / kHosts; ++i) {
    Submit("no room " + std::to_string(i), {.cores = 2, .memory_bytes = i});
  }
  Submit("within the bound", {.cores = 1}, Hours(1));
  Submit("beyond it", {.cores = 1, .memory_bytes = 1}, Hours(1));
  EXPECT_THAT(Round(), ElementsAre("within the bound"));
  queue_->Remove("no room 0");
  EXPECT_THAT(Round(), ElementsAre("beyond it"));
}

TEST_F(ClusterQueueTest, ARestoredRunHasItsPlaceAndItsEnd) {
  UseFourGpus();
  const Allocation three = {
      .nodes = {{.host = 0, .cores = 1, .gpus = {{0, 1000}, {1, 1000}, {3, 1000}}}}};
  queue_->Restore("before", three, now_ + Hours(1));
  SubmitGpus("large", 4);
  SubmitGpus("short", 1, Hours(1));
  const std::vector<ReadyRun> ready = queue_->Round(now_);
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].run.run_key, "short");
  EXPECT_EQ(ready[0].allocation.nodes[0].gpus.begin()->first, 2u);
  EXPECT_EQ(queue_->blocked()->start, now_ + Hours(1));
  queue_->Release("before");
  queue_->Release("before");  // once is enough
  EXPECT_THAT(End("short"), ElementsAre("large"));
}

TEST_F(ClusterQueueTest, ARunThatIsPutBackStandsAtItsOldPlace) {
  UseFourGpus();
  SubmitGpus("a", 4);
  SubmitGpus("b", 4);
  std::vector<ReadyRun> ready = queue_->Round(now_);
  ASSERT_EQ(ready.size(), 1u);
  queue_->Release("a");
  queue_->Push(ready[0].run);
  EXPECT_THAT(Round(), ElementsAre("a"));
  EXPECT_TRUE(queue_->Remove("b").has_value());
  EXPECT_FALSE(queue_->Remove("b").has_value());
  EXPECT_THAT(End("a"), IsEmpty());
}

}  // namespace
}  // namespace muster::machines
