// Tests that inventories change while many different jobs wait: groups are held against them again
// in slices.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "contract/refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMemoryUnit = uint64_t{1} << 30;
constexpr uint64_t kMostRefitRounds = 1000;

class RefitTest : public CoreTest {
 protected:
  RefitTest() {
    options_.max_fit_checks_per_round = 10;
    LetAllWaitOnClusters();
  }

  // Submits a job of `gib` of memory, unlike all others.
  uint64_t SubmitDifferent(uint64_t gib) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_memory_bytes(gib * kMemoryUnit + ++different_);
    return MustSubmit(spec);
  }

  agent::v1::AgentHello HelloWith(const std::string& cluster, uint64_t gib) {
    agent::v1::AgentHello hello = Hello(cluster);
    hello.mutable_inventory()->mutable_pools(0)->mutable_node_groups(0)->set_memory_bytes(
        gib * kMemoryUnit);
    return hello;
  }
  void Change(SessionId session, uint64_t gib) {
    agent::v1::AgentHeartbeat beat;
    *beat.mutable_inventory() = HelloWith("a", gib).inventory();
    Beat(session, beat);
  }

  // Rounds until nothing is left to do; the run keys that were assigned, in order.
  std::vector<std::string> RoundsToTheEnd(SessionId session) {
    std::vector<std::string> assigned = Assigned(session);
    for (rounds_ = 1; rounds_ < kMostRefitRounds; ++rounds_) {
      last_ = {};
      const bool more = core_->PlaceJobs(now_, &last_);
      EXPECT_TRUE(store_.Commit(last_.changes).ok());
      EXPECT_TRUE(core_->CheckInvariants().ok()) << core_->CheckInvariants();
      for (const std::string& key : Assigned(session)) assigned.push_back(key);
      if (!more) break;
    }
    return assigned;
  }

  // Forgets the cluster without a round of placement; true if it was forgotten.
  bool Forget(const std::string& cluster) {
    Output out;
    core_->Handle(ForgetCluster{.ticket = 1, .name = cluster}, now_, &out);
    EXPECT_TRUE(store_.Commit(out.changes).ok());
    const auto* reply = std::get_if<StatusReply>(&out.effects.back());
    return reply != nullptr && !reply->refusal;
  }

  uint64_t different_ = 0;
  uint64_t rounds_ = 0;
};

TEST_F(RefitTest, ALargerClusterIsFoundByAllJobsAfterSomeRounds) {
  const SessionId a = Connect(HelloWith("a", 4));
  Gone(Connect(HelloWith("away", 64)));
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(Key(SubmitDifferent(32)));
  EXPECT_THAT(Assigned(a), IsEmpty());
  Change(a, 64);
  std::vector<std::string> assigned = RoundsToTheEnd(a);
  EXPECT_GT(rounds_, 10u) << "a round has looked at more than it may";
  std::sort(assigned.begin(), assigned.end());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(assigned, keys);
}

TEST_F(RefitTest, NothingIsPlacedOnAClusterThatHasBecomeTooSmallWhileThePassGoesOn) {
  // It fits them all, and its agent is away.
  Gone(Connect(HelloWith("a", 64)));
  std::vector<std::string> small;
  for (int i = 0; i < 50; ++i) {
    SubmitDifferent(32);
    small.push_back(Key(SubmitDifferent(1)));
  }
  // The agent comes back, and its cluster is smaller.
  const SessionId a = Connect(HelloWith("a", 4));
  EXPECT_THAT(RoundsToTheEnd(a), ElementsAreArray(small)) << "in their order, without the others";
}

TEST_F(RefitTest, AChangeInTheCourseOfAPassIsSeenByAllGroups) {
  const SessionId a = Connect(HelloWith("a", 64));
  Gone(Connect(HelloWith("away", 64)));
  Change(a, 1);
  for (int i = 0; i < 50; ++i) SubmitDifferent(32);
  Change(a, 2);
  Change(a, 3);
  Change(a, 64);
  EXPECT_THAT(RoundsToTheEnd(a), SizeIs(50));
}

TEST_F(RefitTest, ASubmitIsJudgedByTheLatestInventories) {
  const SessionId a = Connect(HelloWith("a", 64));
  for (int i = 0; i < 50; ++i) SubmitDifferent(32);
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_memory_bytes(32 * kMemoryUnit + 50);
  // The job is alike to the last of them, whose group the pass has not come to.
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = HelloWith("a", 1).inventory();
  Output out;
  core_->Handle(AgentBeat{a, beat}, now_, &out);
  EXPECT_TRUE(store_.Commit(out.changes).ok());
  EXPECT_EQ(ReasonOf(SubmitOne(spec).status()), "CANNOT_BE_PLACED");
}

TEST_F(RefitTest, ForgettingAClusterLooksAtNoMoreJobsInARoundThanAnotherInventory) {
  Gone(Connect(HelloWith("a", 64)));
  const SessionId b = Connect(HelloWith("b", 4));
  for (int i = 0; i < 100; ++i) SubmitDifferent(32);
  ASSERT_TRUE(Forget("a"));
  EXPECT_THAT(RoundsToTheEnd(b), IsEmpty());
  EXPECT_GT(rounds_, 10u) << "a round has looked at more than it may";
}

TEST_F(RefitTest, ANamesakeOfAClusterThatIsBeingForgottenTakesItsJobs) {
  Gone(Connect(HelloWith("a", 64)));
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) keys.push_back(Key(SubmitDifferent(32)));
  ASSERT_TRUE(Forget("a"));
  agent::v1::AgentHello other = HelloWith("a", 64);
  other.mutable_inventory()->set_identity("another one of that name");
  const SessionId a = Connect(other);
  std::vector<std::string> assigned = RoundsToTheEnd(a);
  std::sort(assigned.begin(), assigned.end());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(assigned, keys);
}

TEST_F(RefitTest, ASubmitIsJudgedWithoutAClusterThatIsBeingForgotten) {
  Gone(Connect(HelloWith("a", 64)));
  Gone(Connect(HelloWith("b", 1)));
  for (int i = 0; i < 50; ++i) SubmitDifferent(32);
  ASSERT_TRUE(Forget("a"));
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_memory_bytes(32 * kMemoryUnit + 50);
  // The job is alike to the last of them, whose group the pass has not come to.
  EXPECT_EQ(ReasonOf(SubmitOne(spec).status()), "CANNOT_BE_PLACED");
}

TEST_F(RefitTest, AClusterThatIsForgottenInTheCourseOfAPassLeavesAllLanes) {
  Gone(Connect(HelloWith("a", 64)));
  const SessionId b = Connect(HelloWith("b", 4));
  Gone(Connect(HelloWith("c", 64)));
  for (int i = 0; i < 50; ++i) SubmitDifferent(32);
  ASSERT_TRUE(Forget("a"));
  Tick();
  ASSERT_TRUE(Forget("c"));
  EXPECT_THAT(RoundsToTheEnd(b), IsEmpty());
  // The rounds compare lanes with what is known of clusters; another pass does so once more.
  Gone(Connect(HelloWith("d", 64)));
  EXPECT_THAT(RoundsToTheEnd(b), IsEmpty());
  EXPECT_THAT(Clusters(), SizeIs(2));
}

TEST_F(RefitTest, NothingIsLeftOfAForgottenClusterWhenNoFurtherRoundIsNeeded) {
  constexpr int kMostClusters = 10'000;
  agent::v1::AgentHello hello;
  Output out;
  for (SessionId session = 1; session <= kMostClusters; ++session) {
    hello = Hello(fmt::format("c{}", session));
    core_->Handle(AgentConnected{session, hello}, now_, &out);
  }
  core_->Handle(AgentGone{kMostClusters}, now_, &out);
  while (core_->PlaceJobs(now_, &out)) {
  }
  core_->Handle(ForgetCluster{.ticket = 1, .name = hello.cluster()}, now_, &out);
  while (core_->PlaceJobs(now_, &out)) {
  }
  core_->Handle(AgentConnected{kMostClusters, Hello("last")}, now_, &out);
  out = {};
  core_->Handle(AgentConnected{kMostClusters + 1, Hello("too-many")}, now_, &out);
  ASSERT_FALSE(out.effects.empty());
  const auto* closed = std::get_if<CloseAgent>(&out.effects.back());
  ASSERT_NE(closed, nullptr);
  EXPECT_EQ(ReasonOf(contract::ToStatus(closed->why)), "TOO_MANY_CLUSTERS");
  EXPECT_THAT(std::string(contract::ToStatus(closed->why).message()),
              HasSubstr("is forgetting 0;"));
}

TEST_F(RefitTest, PlacesOfForgottenClustersAreTakenAgain) {
  constexpr int kMoreThanIndexes = 70'000;
  // Keeps its place while the others come and go.
  const SessionId stays = Connect(HelloWith("stays", 1));
  const uint64_t running = MustSubmit(Spec());
  agent::v1::AgentHello hello = HelloWith("a", 64);
  Output out;
  for (SessionId session = 1'000'000; session < 1'000'000 + kMoreThanIndexes; ++session) {
    out = {};
    hello.set_max_active_runs(1);
    core_->Handle(AgentConnected{session, hello}, now_, &out);
    core_->Handle(AgentGone{session}, now_, &out);
    core_->Handle(ForgetCluster{.ticket = 1, .name = "a"}, now_, &out);
    while (core_->PlaceJobs(now_, &out)) {
    }
  }
  EXPECT_TRUE(core_->CheckInvariants().ok()) << core_->CheckInvariants();
  Report(stays, {Event(1, Key(running), v1::RUN_STATE_LAUNCHING),
                 Event(2, Key(running), v1::RUN_STATE_RUNNING),
                 LogsComplete(3, Key(running), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Job(running).state(), v1::JOB_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace muster::core
