// Tests the choice of a cluster: the one where the job is expected to start first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "broker/core/placement/estimate.h"
#include "broker/core/timestamps.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;

class PlacementTest : public CoreTest {
 protected:
  SessionId ConnectWith(const std::string& name, const NodeOptions& nodes) {
    agent::v1::AgentHello hello = Hello(name);
    *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", nodes);
    return Connect(hello);
  }
  static v1::JobSpec Wide(uint64_t cpus) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_cpu_millis(cpus * 1000);
    return spec;
  }
  std::string ClusterOf(uint64_t job) { return Job(job).cluster(); }
  // Ten seconds after it was reported before; an agent that says nothing for longer is gone.
  void Pass(absl::Duration time, const std::vector<SessionId>& sessions) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + absl::Seconds(10));
      for (const SessionId session : sessions) Beat(session);
    }
  }
  agent::v1::RunEvent Starts(uint64_t sequence, uint64_t job) {
    agent::v1::RunEvent event = Event(sequence, Key(job), v1::RUN_STATE_RUNNING);
    SetTimestamp(now_, event.mutable_start_time());
    SetTimestamp(now_, event.mutable_evidence()->mutable_observed_at());
    return event;
  }
};

TEST_F(PlacementTest, AJobGoesWhereThereIsRoomForIt) {
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 16});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "b") << "more of it is free afterwards";
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "a");
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "b") << "the only one with room";
}

TEST_F(PlacementTest, RoomComesBackWhenARunEnds) {
  const SessionId a = ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 8});
  const uint64_t first = MustSubmit(Wide(8));
  EXPECT_EQ(ClusterOf(first), "a");
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "b");
  Report(a, {Event(1, Key(first), v1::RUN_STATE_FAILED)});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "a");
}

TEST_F(PlacementTest, ABurstSpreadsByTheSizeOfTheClusters) {
  ConnectWith("a", {.count = 1, .cpus = 10});
  ConnectWith("b", {.count = 3, .cpus = 10});
  std::vector<SubmitItem> items;
  for (int i = 0; i < 40; ++i) items.emplace_back().spec = std::make_shared<v1::JobSpec>(Wide(1));
  ASSERT_TRUE(Submit(std::move(items)).result.ok());
  std::map<std::string, int> runs;
  for (uint64_t id = 1; id <= 40; ++id) ++runs[ClusterOf(id)];
  EXPECT_EQ(runs["a"], 10);
  EXPECT_EQ(runs["b"], 30);
}

TEST_F(PlacementTest, WithoutRoomTheLessBusyClusterHasIt) {
  LetAllWaitOnClusters();
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 4, .cpus = 8});
  for (int i = 0; i < 25; ++i) MustSubmit(Wide(8));
  std::map<std::string, int> runs;
  for (uint64_t id = 1; id <= 25; ++id) ++runs[ClusterOf(id)];
  EXPECT_EQ(runs["a"], 5);
  EXPECT_EQ(runs["b"], 20);
}

TEST_F(PlacementTest, GpusOfAnotherTypeTakeNoRoom) {
  ConnectWith("a", {.count = 1, .cpus = 64, .gpus = {{"a100", 4}, {"t4", 4}}});
  ConnectWith("b", {.count = 1, .cpus = 64, .gpus = {{"a100", 4}}});
  EXPECT_EQ(ClusterOf(MustSubmit(SpecWithGpus("t4", 4))), "a");
  EXPECT_EQ(ClusterOf(MustSubmit(SpecWithGpus("a100", 4))), "a");
  EXPECT_EQ(ClusterOf(MustSubmit(SpecWithGpus("a100", 4))), "b");
}

TEST_F(PlacementTest, NodesThatTakeNoWorkAreNoRoom) {
  agent::v1::AgentHello hello = Hello("a");
  hello.mutable_inventory()->mutable_pools(0)->mutable_node_groups(0)->set_usable_count(0);
  Connect(hello);
  Connect("b");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "b");
}

TEST_F(PlacementTest, AHeldRunTakesNoRoom) {
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 4});
  const uint64_t first = MustSubmit(Wide(8));
  EXPECT_TRUE(Hold({first}).ok());
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(4))), "a");
  EXPECT_TRUE(Release({first}).ok());
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(4))), "b");
}

TEST_F(PlacementTest, AClusterWhoseSchedulerLetsRunsQueueHasNoRoom) {
  const SessionId a = ConnectWith("a", {.count = 8, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 8});
  const uint64_t first = MustSubmit(Wide(1));
  ASSERT_EQ(ClusterOf(first), "a");
  agent::v1::RunEvent waits = Event(2, Key(first), v1::RUN_STATE_PENDING);
  waits.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING), waits});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(1))), "b") << "others have the nodes of a";
  Report(a, {Event(3, Key(first), v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(1))), "a");
}

TEST_F(PlacementTest, LongWaitsInThePastMakeAClusterLaterUntilTheyFade) {
  const SessionId a = ConnectWith("a", {.count = 8, .cpus = 8});
  const SessionId b = ConnectWith("b", {.count = 1, .cpus = 8});
  const uint64_t first = MustSubmit(Wide(1));
  ASSERT_EQ(ClusterOf(first), "a");
  Pass(absl::Minutes(10), {a, b});
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING), Starts(2, first)});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(1))), "b");
  Pass(absl::Hours(12), {a, b});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(1))), "a") << "it gets another try";
}

TEST_F(PlacementTest, WaitsOfOneShapeSayNothingOfAnother) {
  const SessionId a = ConnectWith("a", {.count = 8, .cpus = 8, .gpus = {{"a100", 4}}});
  const SessionId b = ConnectWith("b", {.count = 1, .cpus = 8, .gpus = {{"a100", 4}}});
  const uint64_t first = MustSubmit(SpecWithGpus("a100", 1));
  ASSERT_EQ(ClusterOf(first), "a");
  Pass(absl::Minutes(10), {a, b});
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING), Starts(2, first)});
  EXPECT_EQ(ClusterOf(MustSubmit(SpecWithGpus("a100", 1))), "b");
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(1))), "a");
}

TEST_F(PlacementTest, WithoutRoomTheSchedulersOwnEstimateCounts) {
  const SessionId a = ConnectWith("a", {.count = 4, .cpus = 8});
  const SessionId b = ConnectWith("b", {.count = 1, .cpus = 8});
  std::vector<uint64_t> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(MustSubmit(Wide(8)));
  const auto tell = [&](SessionId session, const std::string& cluster, absl::Duration in) {
    std::vector<agent::v1::RunEvent> events;
    uint64_t sequence = 0;
    for (const uint64_t job : jobs) {
      if (ClusterOf(job) != cluster) continue;
      events.push_back(Event(++sequence, Key(job), v1::RUN_STATE_LAUNCHING));
      events.push_back(Event(++sequence, Key(job), v1::RUN_STATE_PENDING));
      SetTimestamp(now_ + in, events.back().mutable_estimated_start_time());
    }
    Report(session, events);
  };
  tell(a, "a", absl::Hours(5));
  tell(b, "b", absl::Minutes(30));
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(8))), "b");
}

TEST_F(PlacementTest, ARunHasTheEstimateThatItsClusterWasChosenBy) {
  const SessionId a = ConnectWith("a", {.count = 1, .cpus = 8});
  const uint64_t first = MustSubmit(Wide(8));
  ASSERT_TRUE(Job(first).runs(0).has_start_estimate());
  EXPECT_EQ(ToTime(Job(first).runs(0).start_estimate().time()), now_);
  EXPECT_FALSE(Job(first).runs(0).start_estimate().has_earliest()) << "no run has told yet";
  const uint64_t second = MustSubmit(Wide(8));
  EXPECT_FALSE(Job(second).runs(0).has_start_estimate()) << "nothing tells how long it waits";
  EXPECT_FALSE(Clusters()[0].has_estimate_errors());

  Pass(absl::Seconds(20), {a});
  Report(a, {Event(1, Key(first), v1::RUN_STATE_LAUNCHING), Starts(2, first)});
  const v1::EstimateErrors& errors = Clusters()[0].estimate_errors();
  EXPECT_EQ(errors.runs(), 1u);
  EXPECT_EQ(errors.mean_wait().seconds(), 20);
  EXPECT_EQ(errors.mean_error().seconds(), 20);
  Pass(absl::Seconds(100), {a});
  Report(a, {Event(3, Key(second), v1::RUN_STATE_LAUNCHING), Starts(4, second)});
  EXPECT_EQ(Clusters()[0].estimate_errors().runs(), 1u);
  // Its place was the second: one other waited there.
  const uint64_t third = MustSubmit(Wide(8));
  EXPECT_EQ(ToTime(Job(third).runs(0).start_estimate().time()), now_ + absl::Seconds(60));
}

TEST_F(PlacementTest, AnEstimateHasTheIntervalThatHalfOfTheEarlierRunsStartedIn) {
  const SessionId a = ConnectWith("a", {.count = 100, .cpus = 8});
  uint64_t sequence = 0;
  std::vector<uint64_t> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(MustSubmit(Wide(1)));
  for (const uint64_t job : jobs) {
    Pass(absl::Seconds(1), {a});
    Report(a, {Event(++sequence, Key(job), v1::RUN_STATE_LAUNCHING), Starts(sequence + 1, job)});
    ++sequence;
  }
  const v1::StartEstimate estimate = Job(MustSubmit(Wide(1))).runs(0).start_estimate();
  const absl::Time time = ToTime(estimate.time());
  EXPECT_LE(ToTime(estimate.earliest()), time);
  // The errors are 1 to 8 s, and three quarters of the runs were off by at most 6 s.
  EXPECT_EQ(ToTime(estimate.latest()), time + absl::Seconds(6));
}

TEST_F(PlacementTest, QueuedJobsAreToldWhenTheyWouldStart) {
  agent::v1::AgentHello hello = Hello("a");
  *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", {.count = 1, .cpus = 8});
  hello.set_max_active_runs(2);
  const SessionId a = Connect(hello);
  const uint64_t first = MustSubmit(Wide(8));
  const uint64_t second = MustSubmit(Wide(8));
  const uint64_t third = MustSubmit(Wide(8));
  EXPECT_FALSE(Explain(third).clusters(0).has_start_estimate()) << "nothing tells it";
  Pass(absl::Minutes(1), {a});
  Report(a, {Event(1, Key(first), v1::RUN_STATE_FAILED),
             Event(2, Key(second), v1::RUN_STATE_LAUNCHING), Starts(3, second)});
  ASSERT_EQ(ClusterOf(third), "a");
  const v1::StateReason reason = Explain(MustSubmit(Wide(8)));
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_CLUSTER_FULL);
  ASSERT_EQ(reason.clusters_size(), 1);
  // Half a minute for each place.
  EXPECT_EQ(ToTime(reason.clusters(0).start_estimate().time()), now_ + absl::Minutes(1));
  EXPECT_FALSE(reason.has_start_estimate());
}

TEST_F(PlacementTest, PlansComeInTheOrderInWhichClustersAreChosen) {
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 4, .cpus = 8});
  agent::v1::AgentHello full = Hello("c");
  full.set_max_active_runs(1);
  Connect(full);
  MustSubmit(SpecOn("c"));
  core::ListClusters which;
  which.that_could_take = std::make_shared<const v1::JobSpec>(Wide(4));
  which.now = now_;
  const auto names = [&] {
    std::vector<std::string> names;
    for (const v1::Cluster& cluster : ListClusters(which).clusters) names.push_back(cluster.name());
    return names;
  };
  EXPECT_THAT(names(), ElementsAre("b", "a", "c"));
  for (int i = 0; i < 7; ++i)
    MustSubmit([] {
      v1::JobSpec spec = Wide(4);
      spec.mutable_placement()->add_clusters("b");
      return spec;
    }());
  EXPECT_THAT(names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(ListClusters(which).estimates.count("a"), 1u);
  which.max_clusters = 1;
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(PlacementTest, TheUseOfClustersSurvivesARestart) {
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 4});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(4))), "a");
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(4))), "a");
  Restart();
  ConnectWith("a", {.count = 1, .cpus = 8});
  ConnectWith("b", {.count = 1, .cpus = 4});
  EXPECT_EQ(ClusterOf(MustSubmit(Wide(4))), "b");
}

TEST(Rank, OnlyFallsWhenRunsCome) {
  NodeOptions nodes{.count = 3, .cpus = 8};
  PutCluster cluster;
  *cluster.inventory.add_pools() = PoolOf("default", nodes);
  Requirements job = RequirementsOf(Spec());
  placement::Load load;
  const absl::Time now = absl::FromUnixSeconds(1'750'000'000);
  load.waits[placement::ShapeOf(job)].Add(absl::Hours(1), 0, now);
  load.waits[placement::ShapeOf(job)].Add(absl::Seconds(10), 1, now);
  placement::Capacity capacity;
  capacity.pool = &cluster.inventory.pools(0);
  capacity.knows_nodes = true;
  capacity.good_nodes = 3;
  capacity.usable = {.cpu_millis = 24'000};
  placement::Rank last;
  for (int i = 0; i < 50; ++i) {
    const placement::Rank rank =
        placement::RankOf(placement::MakeEstimate(job, Turn(), capacity, load, now));
    EXPECT_LE(last, rank) << i;
    last = rank;
    load.Add(job, placement::Phase::kWaits);
  }
}

}  // namespace
}  // namespace muster::core
