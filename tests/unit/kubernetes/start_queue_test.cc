#include "agents/kubernetes/start_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace muster::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StartQueue::AssignmentPtr MakeRun(int job, uint32_t nodes, int priority = 0) {
  auto run = std::make_shared<v1::Assignment>();
  run->set_run_key("k7m2-" + std::to_string(job) + "-1");
  run->mutable_spec()->set_nodes(nodes);
  run->mutable_spec()->set_priority(priority);
  return run;
}

class StartQueueTest : public testing::Test {
 protected:
  StartQueueTest() { queue.Open(); }

  std::vector<std::string> Ready() {
    std::vector<std::string> keys;
    for (const auto& run : queue.TakeReady()) keys.push_back(run->run_key());
    return keys;
  }

  uint32_t nodes = 4;
  std::set<std::string> full_namespaces;
  int questions = 0;
  StartQueue queue{
      [this](const v1::Assignment& run, const std::vector<Claim>& before) -> std::optional<Misfit> {
        ++questions;
        if (full_namespaces.contains(run.spec().kubernetes().namespace_()))
          return Misfit{.words = "the quota is used up", .is_limited = true};
        uint32_t used = 0;
        for (const Claim& claim : before) used += claim.is_limited ? 0 : claim.run->spec().nodes();
        if (used + run.spec().nodes() <= nodes) return std::nullopt;
        return Misfit{.words = "no " + std::to_string(run.spec().nodes()) + " nodes are free"};
      }};
};

TEST_F(StartQueueTest, RunsStartAsLongAsTheyFitTogetherAndTheOthersSayWhyNot) {
  queue.Add(MakeRun(1, 3), false);
  queue.Add(MakeRun(2, 3), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1"), "no 3 nodes are free");
  EXPECT_THAT(Ready(), IsEmpty());
  queue.Remove("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-2-1"), "");
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
  nodes = 8;
  queue.Add(MakeRun(4, 9), true);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1", "k7m2-3-1"));
}

StartQueue::AssignmentPtr In(const std::string& name_space, int job, uint32_t pods) {
  auto run = std::make_shared<v1::Assignment>(*MakeRun(job, pods));
  run->mutable_spec()->mutable_kubernetes()->set_namespace_(name_space);
  return run;
}

TEST_F(StartQueueTest, AQuotaThatIsUsedUpBlocksTheRunsOfItsNamespaceAlone) {
  full_namespaces = {"a"};
  queue.Add(In("a", 1, 4), false);
  queue.Add(In("b", 2, 4), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-2-1"));
  EXPECT_EQ(queue.ReasonOf("k7m2-1-1"), "the quota is used up");
}

TEST_F(StartQueueTest, BehindARunThatAQuotaBlocksTheFirstThatFindsNoNodesStillKeepsThem) {
  full_namespaces = {"a"};
  queue.SetStarting(In("b", 1, 2));
  queue.Add(In("a", 2, 1), false);
  queue.Add(In("b", 3, 3), false);
  queue.Add(In("b", 4, 2), false);
  EXPECT_THAT(Ready(), IsEmpty()) << "two are free, and the first of b needs three";
}

TEST_F(StartQueueTest, RunsOfTwoPoolsAreNotAlike) {
  for (const std::string pool : {"a", "b"}) {
    auto run = std::make_shared<v1::Assignment>(*MakeRun(pool == "a" ? 1 : 2, 9));
    run->mutable_spec()->mutable_placement()->set_pool(pool);
    queue.Add(run, false);
  }
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(questions, 2);
}

TEST_F(StartQueueTest, LabelsMakeNoOtherKindOfRun) {
  for (int job = 1; job <= 100; ++job) {
    auto run = std::make_shared<v1::Assignment>(*MakeRun(job, 9));
    (*run->mutable_spec()->mutable_kubernetes()->mutable_labels())["n"] = std::to_string(job);
    queue.Add(run, false);
  }
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(questions, 1);
}

TEST_F(StartQueueTest, RunsAlikeAreAskedForOnce) {
  for (int job = 1; job <= 100; ++job) queue.Add(MakeRun(job, 9), false);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(questions, 1);
  EXPECT_EQ(queue.ReasonOf("k7m2-100-1"), "no 9 nodes are free");
}

TEST_F(StartQueueTest, AHeldRunWaitsForItsRelease) {
  queue.Add(MakeRun(1, 1), true);
  EXPECT_THAT(Ready(), IsEmpty());
  queue.SetHeld("k7m2-1-1", false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, ARunThatCouldNotBeLetGoIsToldAgain) {
  queue.Add(MakeRun(1, 1), false);
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
  queue.Return("k7m2-1-1");
  EXPECT_THAT(Ready(), ElementsAre("k7m2-1-1"));
}

TEST_F(StartQueueTest, WhatOthersHaveLetGoTakesItsRoom) {
  queue.SetStarting(MakeRun(1, 3));
  queue.Add(MakeRun(2, 2), false);
  EXPECT_THAT(Ready(), IsEmpty());
}

TEST_F(StartQueueTest, NothingIsReadyBeforeTheQueueIsOpen) {
  StartQueue closed(
      [](const v1::Assignment&, const std::vector<Claim>&) { return std::optional<Misfit>(); });
  closed.Add(MakeRun(1, 1), false);
  EXPECT_TRUE(closed.TakeReady().empty());
  closed.Open();
  EXPECT_EQ(closed.TakeReady().size(), 1);
}

}  // namespace
}  // namespace muster::kubernetes
