#include "agents/kubernetes/verdict/hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/kubernetes/objects/kueue.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

// Makes one that the scheduler has not looked at.
PodObject NewPod() {
  PodObject pod;
  pod.name.name = "k7m2-1-1-0";
  pod.phase = "Pending";
  return pod;
}

PodObject Unschedulable() {
  PodObject pod = NewPod();
  pod.conditions.push_back({"PodScheduled", false, "Unschedulable", "0/2 nodes", {}});
  return pod;
}

PodObject OnNode(const std::string& phase = "Pending") {
  PodObject pod = NewPod();
  pod.node = "node-1";
  pod.phase = phase;
  return pod;
}

PodObject Deleted(PodObject pod) {
  pod.deletion_time = absl::FromUnixSeconds(1'800'000'000);
  return pod;
}

JobObject JobThat(bool is_suspended, const std::string& queue = "") {
  JobObject job;
  job.is_suspended = is_suspended;
  job.queue = queue;
  return job;
}

HoldStep Held(const std::vector<PodObject>& pods, size_t wanted = 1,
              absl::Duration waited = absl::ZeroDuration()) {
  return AdviseHold(JobThat(false), pods, wanted, waited).step;
}

HoldStep Released(const std::vector<PodObject>& pods) {
  return AdviseRelease(JobThat(true), pods).step;
}

TEST(HoldTest, AJobThatWasLetGoIsHeldOnceTheSchedulerHasFoundNoNodeForAnyOfItsPods) {
  EXPECT_EQ(Held({}), HoldStep::kLater) << "its pods are being made";
  EXPECT_EQ(Held({NewPod()}), HoldStep::kLater) << "it may have a node in this moment";
  EXPECT_EQ(Held({Unschedulable()}, 2), HoldStep::kLater) << "the other is being made";
  EXPECT_EQ(Held({Unschedulable(), NewPod()}, 2), HoldStep::kLater);
  EXPECT_EQ(Held({Unschedulable()}), HoldStep::kNow);
  EXPECT_EQ(Held({Unschedulable(), Unschedulable()}, 2), HoldStep::kNow);
}

TEST(HoldTest, NobodyWaitsForEverForThoseWhoMakePodsAndFindNodesForThem) {
  EXPECT_EQ(Held({}, 1, kHoldClearsUp), HoldStep::kNow);
  EXPECT_EQ(Held({NewPod()}, 1, kHoldClearsUp), HoldStep::kNow);
  EXPECT_EQ(Held({NewPod()}, 1, kHoldClearsUp - absl::Milliseconds(1)), HoldStep::kLater);
}

TEST(HoldTest, WhatHasANodeIsHeldNoMore) {
  EXPECT_EQ(Held({OnNode()}), HoldStep::kTooLate);
  EXPECT_EQ(Held({OnNode()}, 1, absl::Hours(1)), HoldStep::kTooLate);
  EXPECT_EQ(Held({OnNode("Succeeded")}), HoldStep::kTooLate);
  EXPECT_EQ(Held({Unschedulable(), OnNode()}, 2), HoldStep::kTooLate) << "one of its pods may run";
}

TEST(HoldTest, PodsThatAnEarlierHoldTakesAwayDecideNothingOfTheNext) {
  EXPECT_EQ(Held({Deleted(OnNode())}), HoldStep::kLater);
  EXPECT_EQ(Held({Deleted(Unschedulable())}), HoldStep::kLater);
  EXPECT_EQ(Held({Deleted(Unschedulable()), Unschedulable()}), HoldStep::kNow);
}

TEST(HoldTest, WhatOthersHaveSuspendedIsTheirs) {
  EXPECT_EQ(AdviseHold(JobThat(true), {}, 1, {}).step, HoldStep::kNone);
}

TEST(HoldTest, OutOfAQueueAJobIsTakenAsLongAsItWaitsThere) {
  EXPECT_EQ(AdviseHold(JobThat(true, "team"), {}, 1, {}).step, HoldStep::kNow);
  EXPECT_EQ(AdviseHold(JobThat(true, kHeldQueue), {}, 1, {}).step, HoldStep::kNone);
  const HoldAdvice late = AdviseHold(JobThat(false, "team"), {Unschedulable()}, 1, absl::Hours(1));
  EXPECT_EQ(late.step, HoldStep::kLater);
  EXPECT_THAT(late.why, HasSubstr("Kueue has let it go"));
  EXPECT_EQ(AdviseHold(JobThat(false, "team"), {OnNode()}, 1, {}).step, HoldStep::kTooLate);
}

TEST(HoldTest, AJobGoesOnOnceItsNodesHaveSaidWhatBecameOfThePodsThatTheHoldTookAway) {
  EXPECT_EQ(Released({}), HoldStep::kNow);
  EXPECT_EQ(Released({Deleted(Unschedulable())}), HoldStep::kNow) << "no node can have begun it";
  const HoldAdvice later = AdviseRelease(JobThat(true), {Deleted(OnNode())});
  EXPECT_EQ(later.step, HoldStep::kLater) << "its program may have begun";
  EXPECT_THAT(later.why, HasSubstr("k7m2-1-1-0 is still being taken away on node node-1"));
  EXPECT_EQ(Released({Unschedulable()}), HoldStep::kLater) << "it may have a node any moment";
  EXPECT_EQ(Released({Deleted(OnNode("Failed"))}), HoldStep::kNow);
  EXPECT_EQ(AdviseRelease(JobThat(false), {}).step, HoldStep::kNone);
}

}  // namespace
}  // namespace muster::kubernetes
