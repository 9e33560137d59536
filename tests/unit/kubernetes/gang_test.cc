#include "agents/kubernetes/verdict/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

PodObject MakePod(uint32_t index, const std::string& node, absl::Duration age) {
  PodObject pod;
  pod.name.name = "k7m2-1-1-" + std::to_string(index);
  pod.index = index;
  pod.node = node;
  pod.phase = node.empty() ? "Pending" : "Running";
  pod.created = kNow - age;
  if (node.empty())
    pod.conditions.push_back({"PodScheduled", false, "Unschedulable", "0/2 nodes", kNow});
  return pod;
}

RunFacts MakeFacts(std::vector<PodObject> pods) {
  RunFacts facts;
  facts.now = kNow;
  facts.pods = std::move(pods);
  return facts;
}

TEST(FindStuckGangTest, HalfAGangThatWaitsLongerThanItsGraceIsTakenDownAndMayBeTriedAgain) {
  const auto stuck = FindStuckGang(
      MakeFacts({MakePod(0, "n1", absl::Minutes(11)), MakePod(1, "", absl::Minutes(11))}), 2,
      absl::Minutes(10));
  ASSERT_TRUE(stuck.has_value());
  EXPECT_EQ(stuck->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(stuck->retriable());
  EXPECT_THAT(stuck->message(), HasSubstr("1 of 2 pods"));
  EXPECT_EQ(stuck->waited().seconds(), 660) << "not the grace";
  EXPECT_THAT(stuck->message(), HasSubstr("from others for 11m: pod k7m2-1-1-1 found none: "
                                          "Unschedulable: 0/2 nodes; all were taken away"));
}

TEST(FindStuckGangTest, WhoeverWaitsWholeIsWholeOrWaitsNotLongIsNotStuck) {
  const absl::Duration old = absl::Minutes(11);
  const absl::Duration grace = absl::Minutes(10);
  EXPECT_FALSE(FindStuckGang(MakeFacts({MakePod(0, "", old), MakePod(1, "", old)}), 2, grace));
  EXPECT_FALSE(FindStuckGang(MakeFacts({MakePod(0, "n1", old), MakePod(1, "n2", old)}), 2, grace));
  EXPECT_FALSE(FindStuckGang(MakeFacts({MakePod(0, "n1", old), MakePod(1, "", absl::Minutes(9))}),
                             2, grace));
  EXPECT_FALSE(FindStuckGang(MakeFacts({MakePod(0, "n1", old), MakePod(1, "", old)}), 2,
                             absl::ZeroDuration()));
}

TEST(FindStuckGangTest, PodsThatAHoldTakesAwayAreNoHalf) {
  RunFacts facts =
      MakeFacts({MakePod(0, "n1", absl::Minutes(11)), MakePod(1, "", absl::Minutes(11))});
  facts.job.emplace().is_suspended = true;
  EXPECT_FALSE(FindStuckGang(facts, 2, absl::Minutes(10)));
  facts.job->is_suspended = false;
  EXPECT_TRUE(FindStuckGang(facts, 2, absl::Minutes(10)));
  facts.pods[0].deletion_time = kNow;
  EXPECT_FALSE(FindStuckGang(facts, 2, absl::Minutes(10))) << "none of those that count has a node";
}

TEST(FindStuckGangTest, PodsThatWereNeverMadeAreWaitedForAsWell) {
  const RunFacts half = MakeFacts({MakePod(0, "n1", absl::Minutes(11))});
  EXPECT_TRUE(FindStuckGang(half, 2, absl::Minutes(10)));
  EXPECT_FALSE(FindStuckGang(half, 1, absl::Minutes(10)));
}

TEST(FindStuckGangTest, ARunThatHasBegunToEndIsTheJobControllers) {
  std::vector<PodObject> pods = {MakePod(0, "n1", absl::Hours(1)), MakePod(1, "", absl::Hours(1))};
  pods[0].phase = "Failed";
  EXPECT_FALSE(FindStuckGang(MakeFacts(pods), 2, absl::Minutes(10)));
}

}  // namespace
}  // namespace muster::kubernetes
