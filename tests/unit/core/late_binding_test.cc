// Jobs wait in the broker while no cluster has room for them, and go where room comes free first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "contract/task_array.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LateBindingTest : public CoreTest {
 protected:
  static agent::v1::AgentHello With(const std::string& name, const NodeOptions& nodes,
                                    v1::ClusterKind kind = v1::CLUSTER_KIND_MACHINES) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_kind(kind);
    *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", nodes);
    return hello;
  }
  static v1::JobSpec Wide(uint64_t cpus, uint32_t nodes = 1) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_cpu_millis(cpus * 1000);
    spec.set_nodes(nodes);
    return spec;
  }
  // Submits so many, and returns those of the last that a cluster has.
  std::vector<uint64_t> Submitted(const v1::JobSpec& spec, int count) {
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(MustSubmit(spec));
    return ids;
  }
  int OnClusters(const std::vector<uint64_t>& jobs) {
    return static_cast<int>(std::count_if(jobs.begin(), jobs.end(), [&](uint64_t id) {
      return Job(id).state() != v1::JOB_STATE_QUEUED;
    }));
  }
  agent::v1::RunEvent Queues(uint64_t job) {
    agent::v1::RunEvent event = Event(++sequence_, Key(job), v1::RUN_STATE_PENDING);
    event.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
    return event;
  }
  std::vector<agent::v1::RunEvent> Queue(uint64_t job) {
    auto launching = Event(++sequence_, Key(job), v1::RUN_STATE_LAUNCHING);
    return {launching, Queues(job)};
  }
  std::vector<agent::v1::RunEvent> Start(uint64_t job) {
    auto launching = Event(++sequence_, Key(job), v1::RUN_STATE_LAUNCHING);
    return {launching, Event(++sequence_, Key(job), v1::RUN_STATE_RUNNING)};
  }
  agent::v1::RunEvent End(uint64_t job) {
    return Event(++sequence_, Key(job), v1::RUN_STATE_SUCCEEDED);
  }
  uint64_t sequence_ = 0;
};

TEST_F(LateBindingTest, AFewRunsWaitOnAFullClusterAndTheOtherJobsInTheBroker) {
  Connect(With("a", {.count = 1, .cpus = 8}));
  const auto jobs = Submitted(Wide(8), 10);
  // One has the node. Runs on their way to their start count among those that wait.
  EXPECT_EQ(OnClusters(jobs), static_cast<int>(options_.sent_ahead_per_pool));
  const v1::StateReason reason = Explain(jobs.back());
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_CLUSTER_BUSY);
  EXPECT_EQ(reason.cluster(), "a");
  EXPECT_THAT(reason.message(), HasSubstr("other jobs have the room"));
}

TEST_F(LateBindingTest, AJobGoesWhereRoomComesFreeFirst) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const SessionId b = Connect(With("b", {.count = 1, .cpus = 8}));
  const auto first = Submitted(Wide(8), 4);  // one runs on each, and one waits on each
  ASSERT_EQ(OnClusters(first), 4);
  sequence_ = 0;
  std::vector<uint64_t> on_b;
  for (const uint64_t id : first) {
    if (Job(id).cluster() == "b") on_b.push_back(id);
  }
  ASSERT_THAT(on_b, SizeIs(2));
  const uint64_t waits = MustSubmit(Wide(8));
  EXPECT_EQ(Job(waits).state(), v1::JOB_STATE_QUEUED);
  Report(b, Start(on_b[0]));
  EXPECT_EQ(Job(waits).cluster(), "b") << "a run has begun there, so that another may wait";
  EXPECT_THAT(Assigned(a), IsEmpty());
}

TEST_F(LateBindingTest, RoomGoesToTheFirstInOrderNotToTheOldest) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const auto jobs = Submitted(Wide(8), 4);
  v1::JobSpec urgent = Wide(8);
  urgent.set_priority(10);
  const uint64_t late = MustSubmit(urgent);
  ASSERT_EQ(OnClusters(jobs), 2);
  Report(a, Start(jobs[0]));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(late)));
}

TEST_F(LateBindingTest, SmallJobsAreNotBlockedByALargeOneThatWaits) {
  const SessionId a = Connect(With("a", {.count = 2, .cpus = 8}));
  const uint64_t half = MustSubmit(Wide(8));
  Report(a, Start(half));
  const auto large = Submitted(Wide(8, 2), 3);
  ASSERT_EQ(OnClusters(large), 2) << "two of them wait there";
  for (const uint64_t id : {large[0], large[1]}) Report(a, Queue(id));
  const auto small = Submitted(Wide(2), 6);
  EXPECT_EQ(OnClusters(small), 4) << "a node is free, and no run that waits would fit it";
  for (int i = 0; i < 4; ++i) {
    now_ += absl::Minutes(1);  // else many begin at once, and more may wait
    Report(a, Start(small[i]));
  }
  Report(a, {End(small[0])});
  EXPECT_EQ(OnClusters(small), 5);
}

TEST_F(LateBindingTest, ALargeJobWaitsAtItsClusterAheadOfLaterSmallOnes) {
  const SessionId a = Connect(With("a", {.count = 2, .cpus = 8}));
  const auto first = Submitted(Wide(8), 4);
  ASSERT_EQ(OnClusters(first), 2);
  const uint64_t large = MustSubmit(Wide(8, 2));
  Submitted(Wide(8), 20);
  // Whenever a run begins there is a place to wait at, which the next in order takes.
  std::vector<std::string> taken;
  for (const uint64_t id : {first[0], first[1]}) {
    Report(a, Start(id));
    for (const std::string& key : Assigned(a)) taken.push_back(key);
  }
  ASSERT_THAT(taken, ElementsAre(Key(first[2]), Key(first[3])));
  for (const uint64_t id : {first[2], first[3]}) Report(a, Queue(id));
  Report(a, {End(first[0]), Event(++sequence_, Key(first[2]), v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Job(large).cluster(), "a") << "its scheduler can now keep nodes free for it";
}

TEST_F(LateBindingTest, ARunThatQueuesBlocksThoseThatNeedAsMuch) {
  const SessionId a = Connect(With("a", {.count = 8, .cpus = 8}));
  const auto first = Submitted(Wide(4), 2);
  for (const uint64_t id : first) Report(a, Queue(id));
  EXPECT_EQ(OnClusters(Submitted(Wide(4), 3)), 0) << "others have the nodes, whatever they are";
  EXPECT_EQ(OnClusters(Submitted(Wide(2), 1)), 1) << "a smaller one may fit";
  Report(a, {Event(++sequence_, Key(first[0]), v1::RUN_STATE_RUNNING),
             Event(++sequence_, Key(first[1]), v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(core_->counters().queued, 0u);
}

TEST_F(LateBindingTest, AClusterWithAQueueOfItsOwnGetsAsManyWaitingRunsAsTheOperatorSays) {
  options_.max_waiting_runs_per_pool = 5;
  Restart();
  Connect(With("a", {.count = 1, .cpus = 8}, v1::CLUSTER_KIND_SLURM));
  EXPECT_EQ(OnClusters(Submitted(Wide(8), 20)), 5);
}

TEST_F(LateBindingTest, AClusterWhereManyRunsBeginGetsMoreAhead) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  std::vector<uint64_t> jobs = Submitted(Wide(8), 40);
  for (int i = 0; i < 8; ++i) {
    Report(a, Start(jobs[i]));
    Report(a, {End(jobs[i])});
  }
  EXPECT_EQ(OnClusters(jobs), 8 + 8) << "as many wait as have begun in a round trip";
  for (int i = 0; i < 10; ++i) {
    now_ += absl::Seconds(10);
    Beat(a);
  }
  for (int i = 8; i < 15; ++i) {
    Report(a, Start(jobs[i]));
    now_ += absl::Minutes(1);
    Beat(a);
    Report(a, {End(jobs[i])});
  }
  EXPECT_LE(OnClusters(jobs), 8 + 8 + 2) << "where they begin slowly, few wait";
}

TEST_F(LateBindingTest, JobsThatWaitGoOnceAClusterIsThereAgain) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const auto jobs = Submitted(Wide(8), 6);
  ASSERT_EQ(OnClusters(jobs), 2);
  Connect(With("b", {.count = 4, .cpus = 8}));
  EXPECT_EQ(OnClusters(jobs), 6) << "a new cluster";
  const auto more = Submitted(Wide(8), 8);
  const int placed = OnClusters(more);
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = With("a", {.count = 5, .cpus = 8}).inventory();
  Beat(a, beat);
  EXPECT_EQ(OnClusters(more), placed + 3) << "a cluster has more nodes";
}

TEST_F(LateBindingTest, ACordonThatIsTakenBackLetsThemGo) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  Connect(With("b", {.count = 1, .cpus = 8}));
  Do(SetCordon{.ticket = 1, .name = "b", .cordon = v1::ClusterCordon()});
  const auto jobs = Submitted(Wide(8), 4);
  ASSERT_EQ(OnClusters(jobs), 2);
  EXPECT_THAT(Assigned(a), IsEmpty());
  Do(SetCordon{.ticket = 2, .name = "b"});
  EXPECT_EQ(OnClusters(jobs), 4);
}

TEST_F(LateBindingTest, AnArrayGoesToSlurmWhole) {
  Connect(With("a", {.count = 1, .cpus = 8}, v1::CLUSTER_KIND_SLURM));
  std::vector<SubmitItem> items;
  for (uint32_t i = 0; i < 50; ++i) {
    v1::JobSpec spec = Wide(8);
    spec.mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = i, .count = 50, .max_id = 49, .place = i}, &spec);
    items.emplace_back().spec = std::make_shared<const v1::JobSpec>(spec);
  }
  ASSERT_TRUE(Submit(std::move(items)).result.ok());
  EXPECT_EQ(core_->counters().queued, 0u);
}

TEST_F(LateBindingTest, WhereNodesAreNotKnownRunsGoUntilSomeQueue) {
  agent::v1::AgentHello hello = With("k", {}, v1::CLUSTER_KIND_KUBERNETES);
  hello.mutable_inventory()->mutable_pools(0)->clear_node_groups();
  const SessionId k = Connect(hello);
  const auto jobs = Submitted(Wide(1), 100);
  EXPECT_EQ(OnClusters(jobs), 64);
  Report(k, Start(jobs[0]));
  EXPECT_EQ(OnClusters(jobs), 66) << "one runs, and 64 and one more may be on their way";
  Report(k, Queue(jobs[1]));
  Report(k, Start(jobs[2]));
  EXPECT_EQ(OnClusters(jobs), 66) << "one waits for resources: so would the next";
}

TEST_F(LateBindingTest, ManyShapesThatWaitAllGetTheirTurn) {
  options_.max_fit_checks_per_round = 20;
  Restart();
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 4000}));
  const uint64_t first = MustSubmit(Wide(4000));
  Report(a, Start(first));
  std::vector<uint64_t> jobs;
  for (uint64_t i = 1; i <= 200; ++i) jobs.push_back(MustSubmit(Wide(1 + 10 * (i % 100))));
  EXPECT_EQ(OnClusters(jobs), static_cast<int>(options_.sent_ahead_per_pool));
  std::vector<uint64_t> running;
  Report(a, {End(first)});
  for (int round = 0; round < 1000 && OnClusters(jobs) < 200; ++round) {
    Output more;
    while (core_->PlaceJobs(now_, &more)) {
    }
    ASSERT_TRUE(store_.Commit(more.changes).ok());
    for (const uint64_t id : jobs) {
      const v1::Job job = Job(id);
      if (job.state() != v1::JOB_STATE_PENDING) continue;
      Report(a, Start(id));
      Report(a, {End(id)});
    }
    Beat(a);
  }
  EXPECT_EQ(OnClusters(jobs), 200);
}

}  // namespace
}  // namespace muster::core
