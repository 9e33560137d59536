#include "agents/kubernetes/start_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

StartQueue::AssignmentPtr MakeRun(int job, uint32_t nodes, int priority = 0) {
  auto run = std::make_shared<agent::v1::Assignment>();
  run->set_run_key("k7m2-" + std::to_string(job) + "-1");
  run->mutable_spec()->set_nodes(nodes);
  run->mutable_spec()->set_priority(priority);
  return run;
}

// A cluster of a few nodes, of which runs take whole ones.
struct Nodes {
  uint32_t free = 4;
  uint32_t for_runs = 99;       // if nothing of Muster's were there
  std::set<std::string> never;  // run keys of those that no waiting helps
  uint32_t of_no_use = 0;       // for one that needs more than there is
  std::set<std::string> full_namespaces;
  int looks = 0;
  std::vector<std::string> asked_for;
};

class NodesLeft : public RoomLeft {
 public:
  explicit NodesLeft(Nodes* nodes, const std::vector<Alike>& starting = {})
      : nodes_(*nodes), free_(nodes->free) {
    ++nodes->looks;
    for (const Alike& runs : starting) {
      for (const auto& run : runs) Leave({run});
    }
  }

  std::optional<Misfit> WaitsFor(const agent::v1::Assignment& run) const override {
    nodes_.asked_for.push_back(run.run_key());
    if (nodes_.full_namespaces.contains(run.spec().kubernetes().namespace_()))
      return Misfit{.words = "the quota is used up", .is_limited = true};
    if (nodes_.never.contains(run.run_key()))
      return Misfit{.is_final = true, .words = "no node matches"};
    if (run.spec().nodes() <= free_) return std::nullopt;
    return Misfit{.words = "no " + std::to_string(run.spec().nodes()) + " nodes are free",
                  .is_behind = run.spec().nodes() <= free_ + kept_};
  }
  bool Leave(const Claim& claim) override {
    if (claim.is_limited) return true;
    const uint32_t needed = claim.run->spec().nodes();
    if (needed <= free_) {
      free_ -= needed;
    } else if (!claim.has_waited_long) {
      free_ = std::min(free_, nodes_.of_no_use);
    } else if (needed > nodes_.for_runs) {
      return false;
    } else {
      kept_ += std::exchange(free_, 0);
    }
    return true;
  }

 private:
  Nodes& nodes_;
  uint32_t free_;
  uint32_t kept_ = 0;
};

class StartQueueTest : public testing::Test {
 protected:
  StartQueueTest() { queue.Open(); }

  std::vector<std::string> Ready() {
    std::vector<std::string> keys;
    for (const auto& run : queue.TakeReady()) keys.push_back(run->run_key());
    return keys;
  }

  Nodes nodes;
  absl::Time now = absl::FromUnixSeconds(1'772'366'400);
  StartQueue queue{
      [this](const auto& starting) { return std::make_unique<NodesLeft>(&nodes, starting); },
      [this] { return now; }};
};

TEST_F(StartQueueTest, RunsStartAsLongAsTheyFitTogetherAndTheOthersSayWhyNot) {
  queue.Add(MakeRun(1, 3), false);
  queue.Add(MakeRun(2, 3), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1").message(), "no 3 nodes are free");
  EXPECT_THAT(Ready(), IsEmpty());
  queue.Remove("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1").message(), "");
}

TEST_F(StartQueueTest, WhatIsAskedForIsJudgedBehindThoseThatWaitBeforeIt) {
  queue.Add(MakeRun(1, 5), false);
  EXPECT_THAT(Ready(), IsEmpty());
  now += absl::Minutes(1);
  EXPECT_THAT(Ready(), IsEmpty());
  const std::optional<Misfit> later = queue.WouldWait(*MakeRun(0, 1));
  ASSERT_TRUE(later.has_value());
  EXPECT_THAT(later->words, StartsWith("job 1 is first, and waits for nodes"));
  EXPECT_FALSE(queue.WouldWait(*MakeRun(0, 1, 50)).has_value()) << "it would come first";
  EXPECT_EQ(queue.Waiting().size(), 1u);
  queue.Remove("k7m2-1-1");
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_FALSE(queue.WouldWait(*MakeRun(0, 1)).has_value());
  EXPECT_THAT(queue.Waiting(), IsEmpty());
}

// A launch costs no search, and no walk over all that wait, while one like it waits.
TEST_F(StartQueueTest, NobodyIsAskedAboutARunBehindOneThatAsksForTheSameAndWaits) {
  queue.Add(MakeRun(1, 5), false);
  EXPECT_THAT(Ready(), IsEmpty());
  const int looks = nodes.looks;
  queue.Add(MakeRun(2, 5), false);
  nodes.free = 5;
  EXPECT_THAT(queue.TakeReady("k7m2-2-1"), IsEmpty());
  EXPECT_EQ(nodes.looks, looks);
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1").message(), "no 5 nodes are free");
  queue.Add(MakeRun(3, 5, /*priority=*/9), false);
  queue.SetHeld("k7m2-1-1", true);
  EXPECT_THAT(queue.TakeReady("k7m2-2-1"), IsEmpty()) << "the third has more priority";
  EXPECT_GT(nodes.looks, looks) << "one that is held comes before nobody";
  queue.Remove("k7m2-3-1");
  queue.Remove("k7m2-1-1");
  EXPECT_EQ(queue.TakeReady("k7m2-2-1").size(), 1u);
}

TEST_F(StartQueueTest, AHoldIsNotedAtOnceWhileRoomIsBeingLookedFor) {
  std::future<void> hold;
  StartQueue* asked = nullptr;
  StartQueue slow([&](const auto&) -> std::unique_ptr<RoomLeft> {
    hold = std::async(std::launch::async, [&] { asked->SetHeld("k7m2-1-1", true); });
    EXPECT_EQ(hold.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return std::make_unique<NodesLeft>(&nodes);
  });
  asked = &slow;
  slow.Open();
  slow.Add(MakeRun(1, 1), false);
  EXPECT_THAT(slow.TakeReady(), IsEmpty()) << "it is heeded, too";
  EXPECT_TRUE(slow.IsHeld("k7m2-1-1"));
}

TEST_F(StartQueueTest, HigherPrioritiesComeFirstThenOlderJobsByNumber) {
  queue.Add(MakeRun(10, 1), false);
  queue.Add(MakeRun(9, 1), false);
  queue.Add(MakeRun(11, 1, 5), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-11-1", "k7m2-9-1", "k7m2-10-1"));
}

TEST_F(StartQueueTest, TheFirstThatFindsNoRoomKeepsWhatThereIsAndOthersPassInWhatIsLeft) {
  queue.SetStarting(MakeRun(1, 2));
  queue.Add(MakeRun(2, 3), false);
  queue.Add(MakeRun(3, 2), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "two are free, and the first needs three";
  nodes.free = 8;
  queue.Add(MakeRun(4, 9), true);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1", "k7m2-3-1"));
}

TEST_F(StartQueueTest, NothingPassesTheFirstThatHasWaitedLongForNodes) {
  nodes.free = 5;
  queue.Add(MakeRun(1, 6), false);
  nodes.of_no_use = 3;
  queue.Add(MakeRun(2, 1), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  now += absl::Minutes(1);
  queue.Add(MakeRun(3, 1), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(queue.ReasonOf("k7m2-3-1").message(),
            "job 1 is first, and waits for nodes that this one could take: no 6 nodes are free");
  nodes.free = 6;
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, OnlyWhatWouldFitWithoutTheFirstIsToldToWaitForIt) {
  nodes.free = 5;
  queue.Add(MakeRun(1, 6), false);
  EXPECT_THAT(Ready(), IsEmpty());
  now += absl::Minutes(1);
  queue.Add(MakeRun(2, 8), false);
  queue.Add(MakeRun(3, 1), false);
  nodes.never = {"k7m2-4-1"};
  queue.Add(MakeRun(4, 2), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1").message(), "no 8 nodes are free");
  EXPECT_THAT(queue.ReasonOf("k7m2-3-1").message(), StartsWith("job 1 is first"));
  EXPECT_EQ(queue.ReasonOf("k7m2-4-1").message(), "no node matches");
}

TEST_F(StartQueueTest, WhatNoWaitingHelpsKeepsNothingAndTheNextIsFirst) {
  queue.Add(MakeRun(1, 4), false);
  nodes.never = {"k7m2-1-1"};
  queue.Add(MakeRun(2, 5), false);
  queue.Add(MakeRun(3, 1), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "the second keeps the four";
  queue.Remove("k7m2-2-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-3-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), "no node matches");
}

TEST_F(StartQueueTest, WhatOthersKeepFromTheFirstForLongIsLeftToThoseBehindItAndTheNextIsFirst) {
  queue.Add(MakeRun(1, 6), false);
  queue.Add(MakeRun(2, 2), false);
  nodes.for_runs = 5;
  EXPECT_THAT(Ready(), IsEmpty()) << "it may pass";
  now += absl::Minutes(1);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  queue.Add(MakeRun(3, 5), false);
  queue.Add(MakeRun(4, 2), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "two are left, and the third job keeps them";
  EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), "no 6 nodes are free");
}

TEST_F(StartQueueTest, ALaunchThatIsUnderWayKeepsItsPlaceAndItsRoomForAWhile) {
  queue.Expect(MakeRun(1, 4), false);
  queue.Add(MakeRun(2, 4), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "the second is through earlier";
  queue.Add(MakeRun(1, 4), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.Remove("k7m2-1-1");
  queue.Expect(MakeRun(1, 4, 5), false);
  EXPECT_THAT(Ready(), IsEmpty());
  now += absl::Seconds(11);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1")) << "one that hangs stops the others no longer";
}

TEST_F(StartQueueTest, ALaunchThatIsUnderWayAndWasRefusedKeepsNothing) {
  queue.Expect(MakeRun(1, 4), false);
  queue.Add(MakeRun(2, 4), false);
  queue.Remove("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
}

TEST_F(StartQueueTest, AHoldThatComesBeforeItsRunOrDuringItsLaunchIsHeeded) {
  queue.SetHeld("k7m2-1-1", true);
  queue.Add(MakeRun(1, 1), false);
  queue.Expect(MakeRun(2, 1), false);
  queue.SetHeld("k7m2-2-1", true);
  queue.Add(MakeRun(2, 1), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_TRUE(queue.IsHeld("k7m2-2-1"));
  queue.SetHeld("k7m2-1-1", false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

StartQueue::AssignmentPtr In(const std::string& name_space, int job, uint32_t pods) {
  auto run = std::make_shared<agent::v1::Assignment>(*MakeRun(job, pods));
  run->mutable_spec()->mutable_kubernetes()->set_namespace_(name_space);
  return run;
}

TEST_F(StartQueueTest, AQuotaThatIsUsedUpBlocksTheRunsOfItsNamespaceAlone) {
  nodes.full_namespaces = {"a"};
  queue.Add(In("a", 1, 4), false);
  queue.Add(In("b", 2, 4), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), "the quota is used up");
}

TEST_F(StartQueueTest, BehindARunThatAQuotaBlocksTheFirstThatFindsNoNodesStillKeepsThem) {
  nodes.full_namespaces = {"a"};
  queue.SetStarting(In("b", 1, 2));
  queue.Add(In("a", 2, 1), false);
  queue.Add(In("b", 3, 3), false);
  queue.Add(In("b", 4, 2), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "two are free, and the first of b needs three";
}

TEST_F(StartQueueTest, RunsOfTwoPoolsAreNotAlike) {
  for (const std::string pool : {"a", "b"}) {
    auto run = std::make_shared<agent::v1::Assignment>(*MakeRun(pool == "a" ? 1 : 2, 9));
    run->mutable_spec()->mutable_placement()->set_pool(pool);
    queue.Add(run, false);
  }
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(nodes.asked_for.size(), 2);
}

TEST_F(StartQueueTest, LabelsMakeNoOtherKindOfRun) {
  for (int job = 1; job <= 100; ++job) {
    auto run = std::make_shared<agent::v1::Assignment>(*MakeRun(job, 9));
    (*run->mutable_spec()->mutable_kubernetes()->mutable_labels())["n"] = std::to_string(job);
    queue.Add(run, false);
  }
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(nodes.asked_for.size(), 1);
}

TEST_F(StartQueueTest, RunsAlikeAreAskedForOnce) {
  for (int job = 1; job <= 100; ++job) queue.Add(MakeRun(job, 9), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(nodes.asked_for.size(), 1);
  EXPECT_EQ(queue.ReasonOf("k7m2-100-1").message(), "no 9 nodes are free");
}

TEST_F(StartQueueTest, OneLookIsForAllRuns) {
  for (uint32_t job = 1; job <= 100; ++job) queue.Add(MakeRun(job, 4 + job), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(nodes.looks, 1);
  EXPECT_EQ(nodes.asked_for.size(), 100);
}

TEST_F(StartQueueTest, OfVeryManyKindsThatFindNoRoomEachLookAsksForOthers) {
  constexpr uint32_t kKinds = 1200;
  for (uint32_t job = 1; job <= kKinds; ++job) queue.Add(MakeRun(job, 4 + job), false);
  // The first keeps all there is, and what comes last needs none of it.
  queue.Add(MakeRun(kKinds + 1, 0), false);
  std::vector<std::string> ready;
  int looks = 0;
  for (; ready.empty() && looks < 10; ++looks) ready = Ready();
  EXPECT_THAT(ready, ElementsAre("k7m2-1201-1"));
  EXPECT_EQ(looks, 3);
  const auto times_asked = [&](const char* run_key) {
    return std::count(nodes.asked_for.begin(), nodes.asked_for.end(), run_key);
  };
  EXPECT_EQ(times_asked("k7m2-1-1"), 3) << "each look keeps its room";
  EXPECT_EQ(times_asked("k7m2-2-1"), 1);
  EXPECT_EQ(times_asked("k7m2-1200-1"), 1);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(times_asked("k7m2-2-1"), 2) << "then from the top again";
}

TEST_F(StartQueueTest, AHeldRunWaitsForItsRelease) {
  queue.Add(MakeRun(1, 1), true);
  EXPECT_THAT(Ready(), IsEmpty());
  queue.SetHeld("k7m2-1-1", false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, ARunThatCouldNotBeLetGoIsToldAgainAfterAPauseThatGrows) {
  queue.Add(MakeRun(1, 1), false);
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
    EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), seconds == 1 ? "" : "jobs may not be patched")
        << "as far as is known";
    queue.Return("k7m2-1-1", "jobs may not be patched");
    EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), "jobs may not be patched");
    now += absl::Seconds(seconds) - absl::Milliseconds(1);
    EXPECT_THAT(Ready(), IsEmpty());
    now += absl::Milliseconds(1);
  }
}

TEST_F(StartQueueTest, ARunThatCouldNotBeLetGoLeavesItsRoomToOthersUntilItIsReadyAgain) {
  queue.Add(MakeRun(1, 4), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.Return("k7m2-1-1", "jobs may not be patched");
  queue.Add(MakeRun(2, 4), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  now += absl::Seconds(1);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(queue.ReasonOf("k7m2-1-1").message(), "no 4 nodes are free");
}

TEST_F(StartQueueTest, RunsThatCouldNotBeLetGoComeAfterTheOthersTheLatestLast) {
  for (const int job : {1, 2, 3}) queue.Add(MakeRun(job, 1), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1", "k7m2-2-1", "k7m2-3-1"));
  queue.Return("k7m2-2-1", "jobs may not be patched");
  now += absl::Milliseconds(1);
  queue.Return("k7m2-1-1", "jobs may not be patched");
  queue.Postpone("k7m2-3-1");
  EXPECT_THAT(Ready(), IsEmpty()) << "what nobody has tried pauses as well";
  now += absl::Seconds(1);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-3-1", "k7m2-2-1", "k7m2-1-1"));
}

TEST_F(StartQueueTest, WhatIsPutBackIsReadyAtOnce) {
  queue.Add(MakeRun(1, 1), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.PutBack("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, WhoeverAsksForOneRunGetsThatOneInItsTurn) {
  queue.Add(MakeRun(1, 3), false);
  queue.Add(MakeRun(2, 1), false);
  queue.Add(MakeRun(3, 1), false);
  EXPECT_TRUE(queue.TakeReady("k7m2-3-1").empty()) << "those before it need all there is";
  EXPECT_EQ(queue.TakeReady("k7m2-2-1").size(), 1);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, WhatHasItsNodesKeepsItsRoomUntilTheNodesShowIt) {
  queue.Add(MakeRun(1, 3), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  now += absl::Minutes(2);  // its pods have waited in the cluster
  queue.SetPlaced("k7m2-1-1");
  queue.Add(MakeRun(2, 3), false);
  EXPECT_THAT(Ready(), IsEmpty());
  now += absl::Seconds(10);
  queue.SetPlaced("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
}

TEST_F(StartQueueTest, WhatIsLetGoAnewAfterItHadItsNodesTakesItsRoomAgain) {
  queue.SetStarting(MakeRun(1, 3));
  queue.SetPlaced("k7m2-1-1");
  now += absl::Seconds(9);
  queue.SetStarting(MakeRun(1, 3));
  queue.Add(MakeRun(2, 3), false);
  now += absl::Seconds(50);
  EXPECT_THAT(Ready(), IsEmpty());
}

TEST_F(StartQueueTest, WhatOthersHaveLetGoTakesItsRoom) {
  queue.SetStarting(MakeRun(1, 3));
  queue.Add(MakeRun(2, 2), false);
  EXPECT_THAT(Ready(), IsEmpty());
}

TEST_F(StartQueueTest, WhatHasItsNodesThoughTheAnswerWasLostIsNotAskedForAgain) {
  queue.Add(MakeRun(1, 3), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.SetPlaced("k7m2-1-1");  // the watch was faster
  nodes.free = 1;
  queue.Return("k7m2-1-1", "cut off", /*may_be_let_go=*/true);
  queue.SetAsked("k7m2-1-1");
  queue.SetPlaced("k7m2-1-1");
  now += absl::Seconds(11);
  nodes.asked_for.clear();
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_THAT(nodes.asked_for, IsEmpty());
}

TEST_F(StartQueueTest, WhatIsTakenBackAfterItHadItsNodesWaitsForItsTurn) {
  queue.Add(MakeRun(1, 3), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.SetPlaced("k7m2-1-1");
  now += absl::Seconds(30);
  queue.SetHeld("k7m2-1-1", true);
  queue.TakeBack("k7m2-1-1");
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_TRUE(queue.IsKeptBack("k7m2-1-1"));
  for (const auto& run : queue.Waiting()) EXPECT_NE(run, nullptr);
  queue.SetHeld("k7m2-1-1", false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, NothingIsReadyBeforeTheQueueIsOpen) {
  StartQueue closed([this](const auto&) { return std::make_unique<NodesLeft>(&nodes); });
  closed.Add(MakeRun(1, 1), false);
  EXPECT_TRUE(closed.TakeReady().empty());
  closed.Open();
  EXPECT_EQ(closed.TakeReady().size(), 1);
}

}  // namespace
}  // namespace muster::kubernetes
