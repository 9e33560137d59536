#include <fmt/format.h>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PlaceTest : public CoreTest {
 protected:
  agent::v1::AgentHello HelloWithRoomFor(const std::string& name, uint32_t runs) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_max_active_runs(runs);
    return hello;
  }
};

TEST_F(PlaceTest, AJobGoesToTheFirstConnectedClusterThatFits) {
  const SessionId b = Connect("b");
  const SessionId a = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id)));
  EXPECT_THAT(Assigned(b), IsEmpty());
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(job.cluster(), "a");
  ASSERT_EQ(job.runs_size(), 1);
  EXPECT_EQ(job.runs(0).run_key(), Key(id));
  EXPECT_EQ(job.runs(0).state(), v1::RUN_STATE_ASSIGNED);
  EXPECT_TRUE(job.runs(0).has_assign_time());
}

TEST_F(PlaceTest, TheAssignmentIsInTheHistoryWithTheBrokersEvidence) {
  Connect("a");
  const auto history = History(MustSubmit(Spec()));
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_EQ(history[1].run(), 1u);
  EXPECT_EQ(history[1].run_state(), v1::RUN_STATE_ASSIGNED);
  EXPECT_EQ(history[1].job_state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(history[1].evidence().source(), v1::EVIDENCE_SOURCE_BROKER);
  EXPECT_GT(history[1].sequence(), history[0].sequence());
}

TEST_F(PlaceTest, AFreshAssignmentWasNeverLaunched) {
  const SessionId a = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  const auto assignments = Assignments(a);
  ASSERT_THAT(assignments, SizeIs(1));
  EXPECT_FALSE(assignments[0].may_have_been_launched());
  EXPECT_EQ(assignments[0].job_id(), id);
  EXPECT_EQ(assignments[0].run(), 1u);
}

TEST_F(PlaceTest, ANamedClusterIsTheOnlyOne) {
  const SessionId a = Connect("a");
  const SessionId b = Connect("b");
  const uint64_t id = MustSubmit(SpecOn("b"));
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id)));
}

TEST_F(PlaceTest, AFullClusterPassesJobsOnAndTakesMoreWhenARunEnds) {
  const SessionId a = Connect(HelloWithRoomFor("a", 1));
  const SessionId b = Connect(HelloWithRoomFor("b", 1));
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(Spec());
  EXPECT_THAT(Assigned(b), ElementsAre(Key(second)));
  const uint64_t third = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a), IsEmpty());
  EXPECT_THAT(Explain(third).message(), HasSubstr("1 active runs of at most 1"));
  Report(a, {Event(1, Key(first), v1::RUN_STATE_FAILED)});
  EXPECT_THAT(Assigned(a), ElementsAre(Key(third)));
}

TEST_F(PlaceTest, HigherPriorityFirstThenTheOlderJob) {
  v1::JobSpec low = Spec(), high = Spec();
  low.set_priority(-1);
  high.set_priority(10);
  high.set_nodes(2);  // of another group
  const uint64_t one = MustSubmit(low);
  const uint64_t two = MustSubmit(Spec());
  const uint64_t three = MustSubmit(high);
  const uint64_t four = MustSubmit(Spec());
  const uint64_t five = MustSubmit(high);
  EXPECT_THAT(Assigned(Connect("a")),
              ElementsAre(Key(three), Key(five), Key(two), Key(four), Key(one)));
}

TEST_F(PlaceTest, TheOrderSurvivesARestart) {
  v1::JobSpec high = Spec();
  high.set_priority(10);
  const uint64_t one = MustSubmit(Spec());
  const uint64_t two = MustSubmit(high);
  const uint64_t three = MustSubmit(Spec());
  Restart();
  EXPECT_THAT(Assigned(Connect("a")), ElementsAre(Key(two), Key(one), Key(three)));
}

TEST_F(PlaceTest, AJobThatFitsNowhereDoesNotHoldUpOthers) {
  Gone(Connect("big"));
  v1::JobSpec elsewhere = SpecOn("big");
  elsewhere.set_priority(100);
  MustSubmit(elsewhere);
  const uint64_t id = MustSubmit(Spec());
  EXPECT_THAT(Assigned(Connect("a")), ElementsAre(Key(id)));
}

TEST_F(PlaceTest, ACanceledJobIsSkipped) {
  LetAllWaitOnClusters();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(MustSubmit(Spec()));
  std::vector<uint64_t> canceled;
  std::vector<std::string> left;
  for (uint64_t id : ids) {
    if (id % 4 != 0) {
      canceled.push_back(id);
    } else {
      left.push_back(Key(id));
    }
  }
  EXPECT_TRUE(Cancel(canceled).ok());
  EXPECT_EQ(Assigned(Connect("a")), left);
}

TEST_F(PlaceTest, ARoundIsBounded) {
  options_.max_assignments_per_round = 10;
  LetAllWaitOnClusters();
  for (int i = 0; i < 25; ++i) MustSubmit(Spec());
  const SessionId a = Connect("a");
  EXPECT_THAT(Assigned(a), SizeIs(10));
  Output more;
  EXPECT_TRUE(core_->PlaceJobs(now_, &more));
  EXPECT_FALSE(core_->PlaceJobs(now_, &more));
  EXPECT_EQ(core_->counters().queued, 0u);
}

TEST_F(PlaceTest, AClusterThatShrinksTakesNoMoreOfWhatItCannotRun) {
  const SessionId a = Connect("a");
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = Hello("a").inventory();
  beat.mutable_inventory()->mutable_pools(0)->mutable_node_groups(0)->set_cpus(1);
  Beat(a, beat);
  v1::JobSpec wide = Spec();
  wide.mutable_resources()->set_cpu_millis(4000);
  EXPECT_EQ(ReasonOf(SubmitOne(wide).status()), "CANNOT_BE_PLACED");
  *beat.mutable_inventory() = Hello("a").inventory();
  Beat(a, beat);
  MustSubmit(wide);
  EXPECT_THAT(Assigned(a), SizeIs(1));
}

TEST_F(PlaceTest, TheNearestClusterIsExplainedFirstAndEachWithItsNumbers) {
  for (int i = 0; i < 12; ++i) {
    agent::v1::AgentHello hello = Hello(fmt::format("small{:02}", i));
    hello.mutable_inventory()->mutable_pools(0)->mutable_node_groups(0)->set_cpus(1);
    Connect(hello);
  }
  Gone(Connect("zebra"));
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_cpu_millis(2500);
  const v1::StateReason reason = Explain(MustSubmit(spec));
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  EXPECT_EQ(reason.cluster(), "zebra") << "it fits, and waits for its agent alone";
  EXPECT_EQ(reason.since().seconds(), absl::ToUnixSeconds(now_));
  ASSERT_EQ(reason.clusters_size(), 10);
  EXPECT_EQ(reason.unlisted_clusters(), 3u);
  const v1::StateReason& second = reason.clusters(1);
  EXPECT_EQ(second.code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
  EXPECT_EQ(second.cluster(), "small00");
  ASSERT_EQ(second.shortages_size(), 1);
  EXPECT_EQ(second.shortages(0).resource(), "cpus");
  EXPECT_EQ(second.shortages(0).requested(), 3000u);
  EXPECT_EQ(second.shortages(0).available(), 1000u);
  EXPECT_THAT(reason.message(), HasSubstr("cluster \"small00\": pool"));
}

TEST_F(PlaceTest, APoolThatTakesNoJobsMakesThemWait) {
  agent::v1::AgentHello hello = Hello("a");
  hello.mutable_inventory()->mutable_pools(0)->set_available(false);
  hello.mutable_inventory()->mutable_pools(0)->set_state("forbidden");
  const SessionId a = Connect(hello);
  const uint64_t id = MustSubmit(Spec());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  const v1::StateReason reason = Explain(id);
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_POOL_UNAVAILABLE);
  EXPECT_EQ(reason.cluster(), "a");
  EXPECT_EQ(reason.scheduler_reason(), "forbidden");
  EXPECT_THAT(reason.message(), HasSubstr("takes no jobs at the moment: it is forbidden"));
  EXPECT_EQ(reason.remedy(), "muster clusters a tells more");
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = Hello("a").inventory();
  Beat(a, beat);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id)));
}

TEST_F(PlaceTest, AClosedPoolSaysSinceWhenAlsoToABrokerThatStartsAgain) {
  SessionId a = Connect("a");
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = Hello("a").inventory();
  beat.mutable_inventory()->mutable_pools(0)->set_available(false);
  now_ += absl::Minutes(1);
  const absl::Time closed = now_;
  Beat(a, beat);
  const uint64_t id = MustSubmit(Spec());
  now_ += absl::Minutes(1);
  Beat(a, beat);
  EXPECT_EQ(Explain(id).since().seconds(), absl::ToUnixSeconds(closed));
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  *hello.mutable_inventory() = beat.inventory();
  a = Connect(hello);
  EXPECT_EQ(Explain(id).code(), v1::STATE_REASON_CODE_POOL_UNAVAILABLE);
  EXPECT_EQ(Explain(id).since().seconds(), absl::ToUnixSeconds(closed));
}

TEST_F(PlaceTest, APoolThatWasNeverSeenOpenSaysNoTime) {
  agent::v1::AgentHello hello = Hello("a");
  hello.mutable_inventory()->mutable_pools(0)->set_available(false);
  hello.mutable_inventory()->mutable_pools(0)->mutable_unavailable_since()->set_seconds(1);
  Connect(hello);
  EXPECT_FALSE(Explain(MustSubmit(Spec())).has_since()) << "it is not for agents to say";
}

TEST_F(PlaceTest, AFullClusterSaysSinceWhenItIsFull) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  const SessionId a = Connect(hello);
  const absl::Time full = now_;
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(Spec());
  now_ += absl::Seconds(5);  // an agent that says nothing for longer is gone
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING),
             Event(2, Key(first), v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Explain(second).code(), v1::STATE_REASON_CODE_CLUSTER_FULL);
  EXPECT_EQ(Explain(second).since().seconds(), absl::ToUnixSeconds(full));
  Report(a, {Event(3, Key(first), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Explain(MustSubmit(Spec())).since().seconds(), absl::ToUnixSeconds(full))
      << "another run has taken the place at once";
}

TEST_F(PlaceTest, AClusterThatHadRoomIsFullSinceItHadNone) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  const SessionId a = Connect(hello);
  const uint64_t first = MustSubmit(Spec());
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING),
             Event(2, Key(first), v1::RUN_STATE_RUNNING),
             Event(3, Key(first), v1::RUN_STATE_SUCCEEDED)});
  now_ += absl::Seconds(5);
  MustSubmit(Spec());
  EXPECT_EQ(Explain(MustSubmit(Spec())).since().seconds(), absl::ToUnixSeconds(now_));
}

TEST_F(PlaceTest, AClockThatIsSetMovesTheTimeSinceWhichAClusterIsFull) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  Connect(hello);
  MustSubmit(Spec());
  const uint64_t waits = MustSubmit(Spec());
  now_ += absl::Hours(3);
  Do(core::Tick{absl::Hours(3)});
  EXPECT_EQ(Explain(waits).since().seconds(), absl::ToUnixSeconds(now_));
}

TEST_F(PlaceTest, AClusterThatWasFullWhenTheBrokerStartedSaysNoTime) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(1);
  Connect(hello);
  MustSubmit(Spec());
  const uint64_t waits = MustSubmit(Spec());
  Restart();
  Connect(hello);
  EXPECT_EQ(Explain(waits).code(), v1::STATE_REASON_CODE_CLUSTER_FULL);
  EXPECT_FALSE(Explain(waits).has_since());
}

TEST_F(PlaceTest, QueuedJobsMoveToANewClusterThatFits) {
  Connect("a");
  Gone(1);
  v1::JobSpec spec = Spec();
  const uint64_t id = MustSubmit(spec);
  EXPECT_THAT(Assigned(Connect("b")), ElementsAre(Key(id)));
}

TEST_F(PlaceTest, ManyGroupsAreServedInTurn) {
  LetAllWaitOnClusters();
  std::vector<std::string> expected;
  for (uint32_t i = 1; i <= 50; ++i) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_memory_bytes(1 + i % 7);
    expected.push_back(Key(MustSubmit(spec)));
  }
  EXPECT_EQ(Assigned(Connect("a")), expected);
}

TEST_F(PlaceTest, JobsThatFitDifferentClustersAreServedInOneOrder) {
  LetAllWaitOnClusters();
  Gone(Connect("a"));
  Gone(Connect("b"));
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    expected.push_back(Key(MustSubmit(i % 3 == 0 ? SpecOn("a") : Spec())));
  }
  EXPECT_EQ(Assigned(Connect("a")), expected);
}

TEST_F(PlaceTest, AllOfABatchIsOneUpdateForEachJob) {
  MustSubmit(Spec());
  MustSubmit(Spec());
  Connect("a");
  EXPECT_EQ(CountChanges<UpdateJob>(), 2);
  EXPECT_EQ(CountChanges<PutRun>(), 2);
}

}  // namespace
}  // namespace muster::core
