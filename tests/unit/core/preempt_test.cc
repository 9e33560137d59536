// A job of a higher priority takes the room of preemptible ones, and of nobody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/placement/preemption.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PreemptTest : public CoreTest {
 protected:
  static agent::v1::AgentHello With(const std::string& name, const NodeOptions& nodes,
                                    v1::ClusterKind kind = v1::CLUSTER_KIND_MACHINES) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_kind(kind);
    *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", nodes);
    return hello;
  }
  static v1::JobSpec Wide(uint64_t cpus, bool is_preemptible, int32_t priority = 0) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_cpu_millis(cpus * 1000);
    spec.set_priority(priority);
    spec.set_preemptible(is_preemptible);
    return spec;
  }
  agent::v1::RunEvent Says(uint64_t job, v1::RunState state, int run = 1) {
    agent::v1::RunEvent event = Event(++sequence_, Key(job, run), state);
    if (state == v1::RUN_STATE_PENDING)
      event.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
    return event;
  }
  void Start(SessionId session, uint64_t job, const std::string& node = "n1", int run = 1) {
    auto running = Says(job, v1::RUN_STATE_LAUNCHING, run);
    agent::v1::RunEvent runs = Says(job, v1::RUN_STATE_RUNNING, run);
    runs.add_nodes(node);
    Report(session, {running, runs});
  }
  uint64_t Running(SessionId session, const v1::JobSpec& spec, const std::string& node = "n1") {
    const uint64_t id = MustSubmit(spec);
    EXPECT_THAT(Assigned(session), ElementsAre(Key(id)));
    now_ += absl::Seconds(1);
    Start(session, id, node);
    return id;
  }
  void Pass(SessionId session, absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(5)) {
      now_ += absl::Seconds(5);
      Beat(session);
      Tick();
    }
  }
  void Reprioritize(uint64_t running, int32_t priority) {
    const v1::Job job = Job(running);
    Do(core::Edit{.ticket = 1,
                  .job = running,
                  .job_sequence = job.job_sequence(),
                  .state = v1::JOB_STATE_RUNNING,
                  .priority = priority,
                  .priority_before = job.priority()});
  }
  std::vector<v1::TransitionKind> Kinds(uint64_t job) {
    std::vector<v1::TransitionKind> kinds;
    for (const v1::Transition& step : History(job)) {
      if (step.kind() == v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED ||
          step.kind() == v1::TRANSITION_KIND_PREEMPTED)
        kinds.push_back(step.kind());
    }
    return kinds;
  }

  uint64_t sequence_ = 0;
};

TEST_F(PreemptTest, AnUrgentJobTakesTheRoomOfAPreemptibleOneWhichRunsAgainLater) {
  SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  const uint64_t high = MustSubmit(Wide(8, false, 5));
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(low)));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(high))) << "it waits where the room comes free";
  const v1::Job asked = Job(low);
  EXPECT_EQ(asked.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(asked.withdrawal().cause(), v1::WITHDRAWAL_CAUSE_PREEMPTION);
  EXPECT_EQ(asked.withdrawal().for_job(), high);
  EXPECT_EQ(asked.state_reason().code(), v1::STATE_REASON_CODE_WITHDRAWING);
  EXPECT_THAT(asked.state_reason().message(), HasSubstr("job " + std::to_string(high)));
  Report(a, {Says(low, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_QUEUED);
  EXPECT_FALSE(Job(low).has_withdrawal());
  EXPECT_THAT(Kinds(low),
              ElementsAre(v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED, v1::TRANSITION_KIND_PREEMPTED));
  EXPECT_THAT(Assigned(a), IsEmpty()) << "the room is the other job's";
  Start(a, high);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(low, 2))) << "it waits there for the end of that one";
}

TEST_F(PreemptTest, OnlyPreemptibleJobsOfALowerPriorityAreTaken) {
  const SessionId a = Connect(With("a", {.count = 4, .cpus = 8}));
  Running(a, Wide(8, false, 0), "n1");
  Running(a, Wide(8, true, 5), "n2");
  Running(a, Wide(8, true, 6), "n3");
  const uint64_t low = Running(a, Wide(8, true, 4), "n4");
  MustSubmit(Wide(8, false, 4));
  EXPECT_THAT(Cancelled(a), IsEmpty()) << "it is of the same priority";
  MustSubmit(Wide(8, false, 5));
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(low)));
}

TEST_F(PreemptTest, TheFewestAndNewestEnd) {
  const SessionId a = Connect(With("a", {.count = 2, .cpus = 8}));
  Running(a, Wide(4, true), "n1");
  const uint64_t large = Running(a, Wide(4, true), "n1");
  Running(a, Wide(2, true), "n2");
  Running(a, Wide(2, true), "n2");
  Running(a, Wide(2, true), "n2");
  Running(a, Wide(2, true), "n2");
  MustSubmit(Wide(4, false, 5));
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(large)));
}

TEST_F(PreemptTest, NobodyEndsForAJobThatWouldFindNoNodeAllTheSame) {
  const SessionId a = Connect(With("a", {.count = 2, .cpus = 8}));
  for (const char* node : {"n1", "n2"}) {
    Running(a, Wide(4, false), node);
    Running(a, Wide(4, true), node);
  }
  // In sum they would give it enough.
  MustSubmit(Wide(8, false, 5));
  EXPECT_THAT(Cancelled(a), IsEmpty());
  Pass(a, absl::Seconds(30));
  EXPECT_THAT(Cancelled(a), IsEmpty());
}

TEST_F(PreemptTest, NobodyEndsWhereThereIsRoomOrTheClusterDecidesItself) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  const SessionId b = Connect(With("b", {.count = 1, .cpus = 8}));
  const uint64_t high = MustSubmit(Wide(8, false, 5));
  EXPECT_EQ(Job(high).cluster(), "b");
  EXPECT_FALSE(Job(low).has_withdrawal());
  Gone(b);
  Gone(a);
  const SessionId s = Connect(With("s", {.count = 1, .cpus = 8}, v1::CLUSTER_KIND_SLURM));
  sequence_ = 0;
  Running(s, Wide(8, true));
  MustSubmit(Wide(8, false, 5));
  EXPECT_THAT(Cancelled(s), IsEmpty());
}

TEST_F(PreemptTest, ARunThatIsFinishingIsLeftToEndByItself) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  Report(a, {Says(low, v1::RUN_STATE_FINISHING)});
  MustSubmit(Wide(8, false, 5));
  EXPECT_FALSE(Job(low).has_withdrawal());
}

TEST_F(PreemptTest, ARunThatEndsByItselfFirstIsItsJobsEnd) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  for (const v1::RunState end : {v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_FAILED}) {
    const uint64_t low = Running(a, Wide(8, true));
    const uint64_t high = MustSubmit(Wide(8, false, 5));
    ASSERT_TRUE(Job(low).has_withdrawal());
    Report(a, {Says(low, end)});
    EXPECT_EQ(Job(low).state(),
              end == v1::RUN_STATE_FAILED ? v1::JOB_STATE_FAILED : v1::JOB_STATE_SUCCEEDED);
    EXPECT_FALSE(Job(low).has_withdrawal());
    Start(a, high);
    Report(a, {Says(high, v1::RUN_STATE_SUCCEEDED)});
  }
}

TEST_F(PreemptTest, AUsersCancelWins) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  MustSubmit(Wide(8, false, 5));
  ASSERT_TRUE(Cancel({low}).ok());
  EXPECT_FALSE(Job(low).has_withdrawal());
  Report(a, {Says(low, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(PreemptTest, ItIsNoFailedTryAndHappensSoOftenAtMost) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  v1::JobSpec spec = Wide(8, true);
  spec.mutable_retry()->set_max_runs(1);
  const uint64_t low = Running(a, spec);
  for (int run = 1; run <= 5; ++run) {
    const uint64_t high = MustSubmit(Wide(8, false, 5));
    ASSERT_TRUE(Job(low).has_withdrawal()) << run;
    Report(a, {Says(low, v1::RUN_STATE_CANCELED, run)});
    Start(a, high);
    ASSERT_THAT(Assigned(a), ElementsAre(Key(low, run + 1)));
    Report(a, {Says(high, v1::RUN_STATE_SUCCEEDED)});
    Start(a, low, "n1", run + 1);
  }
  MustSubmit(Wide(8, false, 5));
  EXPECT_FALSE(Job(low).has_withdrawal()) << "it would never get done";
  Restart();
  agent::v1::AgentHello hello = With("a", {.count = 1, .cpus = 8});
  hello.add_runs()->set_run_key(Key(low, 6));
  Connect(hello);
  Tick();
  EXPECT_FALSE(Job(low).has_withdrawal()) << "the count is stored";
}

TEST_F(PreemptTest, ThePreemptedPreemptNobody) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  MustSubmit(Wide(8, true, 5));
  EXPECT_FALSE(Job(low).has_withdrawal());
  EXPECT_THAT(Cancelled(a), IsEmpty());
}

TEST_F(PreemptTest, TheWishOutlivesBrokerAndAgent) {
  SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true));
  const uint64_t high = MustSubmit(Wide(8, false, 5));
  ASSERT_TRUE(Job(low).has_withdrawal());
  Restart();
  agent::v1::AgentHello hello = With("a", {.count = 1, .cpus = 8});
  hello.add_runs()->set_run_key(Key(low));
  a = Connect(hello);
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(low)));
  // One that has lost its journal ends the run that it finds.
  Gone(a);
  a = Connect(With("a", {.count = 1, .cpus = 8}));
  bool is_asked = false;
  for (const auto& assignment : Assignments(a))
    is_asked |= assignment.run_key() == Key(low) && assignment.cancel_requested();
  EXPECT_TRUE(is_asked);
  Report(a, {Says(low, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(low).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Job(high).state(), v1::JOB_STATE_PENDING);
}

TEST_F(PreemptTest, AJobThatWaitsIsHelpedOnceAPreemptibleOneIsThere) {
  const SessionId a = Connect(With("a", {.count = 2, .cpus = 8}));
  Running(a, Wide(8, false), "n1");
  const uint64_t small = Running(a, Wide(4, true), "n2");
  v1::JobSpec wide = Wide(8, false, 5);
  wide.set_nodes(2);
  MustSubmit(wide);
  EXPECT_THAT(Cancelled(a), IsEmpty()) << "the other node stays in use";
  const uint64_t one = MustSubmit(Wide(8, false, 4));
  EXPECT_THAT(Cancelled(a), AnyOf(IsEmpty(), ElementsAre(Key(small))));
  (void)one;
}

TEST_F(PreemptTest, AnEditOfThePriorityCounts) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true, 5));
  const uint64_t waits = MustSubmit(Wide(8, false, 3));
  Report(a, {Says(waits, v1::RUN_STATE_LAUNCHING), Says(waits, v1::RUN_STATE_PENDING)});
  Pass(a, absl::Seconds(20));
  EXPECT_FALSE(Job(low).has_withdrawal());
  Reprioritize(low, 1);
  Pass(a, absl::Seconds(20));
  EXPECT_TRUE(Job(low).has_withdrawal());
}

TEST_F(PreemptTest, AJobThatItsQuotaHoldsBackEndsNobodysRun) {
  options_.sent_ahead_per_pool = 1;
  Restart();
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true, 5));
  MustSubmit(Wide(8, false, 4));  // it has the place to wait
  v1::JobSpec spec = Wide(8, false, 3);
  spec.set_project("vision");
  const uint64_t waits = MustSubmit(spec);
  ASSERT_EQ(Job(waits).state(), v1::JOB_STATE_QUEUED);
  contract::ProjectShares shares;
  shares.are_on = true;
  shares.projects["vision"].quota.max_active_runs = 0;
  Share(shares);
  Reprioritize(low, 2);
  Pass(a, absl::Seconds(20));
  EXPECT_FALSE(Job(low).has_withdrawal());
  Share({});
  Pass(a, absl::Seconds(20));
  EXPECT_EQ(Job(low).withdrawal().for_job(), waits) << "the quota alone held it back";
}

TEST_F(PreemptTest, AJobThatALimitOfItsClusterHoldsBackEndsNobodysRun) {
  const SessionId a = Connect(With("a", {.count = 1, .cpus = 8}));
  const uint64_t low = Running(a, Wide(8, true, 5));
  const uint64_t waits = MustSubmit(Wide(8, false, 3));
  Report(a, {Says(waits, v1::RUN_STATE_LAUNCHING)});
  agent::v1::RunEvent limited = Says(waits, v1::RUN_STATE_PENDING);
  limited.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_LIMIT_REACHED);
  Report(a, {limited});
  ASSERT_EQ(Job(waits).state_reason().code(), v1::STATE_REASON_CODE_LIMIT_REACHED);
  Reprioritize(low, 2);
  Pass(a, absl::Seconds(20));
  EXPECT_FALSE(Job(low).has_withdrawal());
  Report(a, {Says(waits, v1::RUN_STATE_PENDING)});
  Pass(a, absl::Seconds(20));
  EXPECT_EQ(Job(low).withdrawal().for_job(), waits) << "the limit alone held it back";
}

TEST(PreemptionLooks, GoOnWithTheClusterThatWasNotVisited) {
  placement::PreemptionLooks looks;
  looks.Begin(10);
  EXPECT_TRUE(looks.Visit(6, 1, 0));
  EXPECT_FALSE(looks.Visit(5, 1, 1));
  EXPECT_FALSE(looks.Visit(1, 2, 0)) << "the round has ended";
  looks.Begin(10);
  EXPECT_EQ(looks.Resume(2), 0u);
  EXPECT_EQ(looks.Resume(1), 1u);
  EXPECT_EQ(looks.Resume(1), 0u) << "only once";
}

// ---- the choice alone

struct Case {
  placement::Amounts each;
  uint32_t count = 1;
  std::vector<placement::NodeRoom> nodes;
  std::vector<placement::PreemptibleRun> runs;
};

bool IsEnough(const Case& it, uint32_t ends) {
  uint32_t good = 0;
  for (const placement::NodeRoom& node : it.nodes) {
    placement::Amounts free = node.free;
    for (size_t i = 0; i < it.runs.size(); ++i) {
      const auto& on = it.runs[i].nodes;
      if ((ends >> i & 1) != 0 && std::find(on.begin(), on.end(), node.name) != on.end())
        free = free + it.runs[i].each;
    }
    if (placement::IsWithin(it.each, free)) ++good;
  }
  return good >= it.count;
}

Case RandomCase(std::mt19937_64* random, bool on_one_node) {
  const auto below = [random](uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(*random);
  };
  Case it;
  it.each.cpu_millis = 1000 * (1 + below(8));
  it.count = static_cast<uint32_t>(1 + below(3));
  const uint64_t nodes = 1 + below(4);
  for (uint64_t i = 0; i < nodes; ++i)
    it.nodes.push_back({"n" + std::to_string(i), {.cpu_millis = 1000 * below(3)}});
  const uint64_t runs = below(9);
  for (uint64_t i = 0; i < runs; ++i) {
    placement::PreemptibleRun run;
    run.began = absl::FromUnixSeconds(static_cast<int64_t>(below(1000)));
    run.each.cpu_millis = 1000 * (1 + below(4));
    const uint64_t first = below(nodes);
    run.nodes = {it.nodes[first].name};
    if (!on_one_node && nodes > 1 && below(3) == 0)
      run.nodes.push_back(it.nodes[(first + 1) % nodes].name);
    it.runs.push_back(std::move(run));
  }
  return it;
}

TEST(ChooseRunsToEnd, FindsEnoughOrNothingWouldBeAndNoneTooMuch) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const bool on_one_node = i % 2 == 0;
    const Case it = RandomCase(&random, on_one_node);
    const auto chosen = placement::ChooseRunsToEnd(it.each, it.count, 0, it.nodes, it.runs);
    const auto all = static_cast<uint32_t>((1u << it.runs.size()) - 1);
    ASSERT_EQ(chosen.has_value(), IsEnough(it, all)) << i;
    if (!chosen) continue;
    uint32_t ends = 0;
    for (const size_t run : *chosen) ends |= 1u << run;
    ASSERT_TRUE(IsEnough(it, ends)) << i;
    for (const size_t run : *chosen) {
      EXPECT_FALSE(IsEnough(it, ends & ~(1u << run))) << i << ": run " << run << " may go on";
    }
    if (!on_one_node) continue;
    for (uint32_t other = 0; other <= all; ++other) {
      if (__builtin_popcount(other) < __builtin_popcount(ends)) {
        ASSERT_FALSE(IsEnough(it, other)) << i << ": fewer are enough";
      }
    }
  }
}

TEST(ChooseRunsToEnd, OfThoseThatGiveTheSameTheNewestEnd) {
  Case it;
  it.each.cpu_millis = 2000;
  it.nodes = {{"n0", {}}, {"n1", {}}};
  for (int i = 0; i < 4; ++i) {
    it.runs.push_back({.began = absl::FromUnixSeconds(100 * (i == 2 ? 9 : i)),
                       .each = {.cpu_millis = 2000},
                       .nodes = {i < 2 ? "n0" : "n1"}});
  }
  EXPECT_THAT(*placement::ChooseRunsToEnd(it.each, 1, 0, it.nodes, it.runs), ElementsAre(2));
  EXPECT_THAT(*placement::ChooseRunsToEnd(it.each, 2, 0, it.nodes, it.runs),
              UnorderedElementsAre(1, 2));
  EXPECT_THAT(*placement::ChooseRunsToEnd(it.each, 2, 1, it.nodes, it.runs), ElementsAre(2));
}

}  // namespace
}  // namespace muster::core
