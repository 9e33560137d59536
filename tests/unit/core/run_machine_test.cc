// A run follows the table for every pair of states.
#include "broker/core/run_machine.h"

#include <gtest/gtest.h>

#include "broker/core/timestamps.h"
#include "contract/states.h"

namespace muster::core {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

v1::Run RunIn(v1::RunState state) {
  v1::Run run = AssignedRun(1, "k7m2-1-1", "a", kNow);
  run.set_state(state);
  return run;
}

template <typename F>
void ForEachPairOfStates(F check) {
  for (int from = v1::RUN_STATE_ASSIGNED; from <= v1::RunState_MAX; ++from) {
    for (int to = v1::RunState_MIN; to <= v1::RunState_MAX; ++to) {
      SCOPED_TRACE(contract::Name(static_cast<v1::RunState>(from)));
      SCOPED_TRACE(contract::Name(static_cast<v1::RunState>(to)));
      check(static_cast<v1::RunState>(from), static_cast<v1::RunState>(to));
    }
  }
}

TEST(RunMachine, MovesAsTheTableSaysAndRefusesTheRest) {
  ForEachPairOfStates([](v1::RunState from, v1::RunState to) {
    const v1::Run before = RunIn(from);
    v1::Run run = before;
    agent::v1::RunEvent event;
    event.set_state(to);
    event.set_external_id("77");
    const RunStep step = Apply(event, kNow + absl::Seconds(1), &run);
    if (from == to) {
      EXPECT_EQ(step, RunStep::kShown);
    } else if (contract::IsLegal(from, to)) {
      EXPECT_EQ(step, RunStep::kMoved);
      EXPECT_EQ(run.has_end_time(), contract::IsTerminal(to));
      EXPECT_EQ(run.has_start_time(), to == v1::RUN_STATE_RUNNING);
    } else {
      EXPECT_EQ(step, RunStep::kRefused);
      EXPECT_EQ(run.SerializeAsString(), before.SerializeAsString());
      return;
    }
    EXPECT_EQ(run.state(), to);
    EXPECT_EQ(run.external_id(), "77");
  });
}

TEST(RunMachine, ResultsAndProgressAreShownAndStayUntilToldAnew) {
  v1::Run run = RunIn(v1::RUN_STATE_RUNNING);
  agent::v1::RunEvent event;
  event.set_state(v1::RUN_STATE_RUNNING);
  event.set_results_directory("/lustre/results/1");
  for (const char* name : {"epoch", "loss", "kpi.a", "kpi.b", "kpi.c"})
    (*event.mutable_progress()->mutable_numbers())[name] = 3;
  EXPECT_EQ(Apply(event, kNow, &run), RunStep::kShown);
  agent::v1::RunEvent other;
  other.set_state(v1::RUN_STATE_RUNNING);
  // Numbers have no order, and each look at them may bring another one.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Apply(other, kNow, &run), RunStep::kUnseen);
  EXPECT_EQ(run.results_directory(), "/lustre/results/1");
  EXPECT_EQ(run.progress().numbers().at("epoch"), 3);
  other.set_state(v1::RUN_STATE_PENDING);
  EXPECT_EQ(Apply(other, kNow, &run), RunStep::kMoved);
  EXPECT_FALSE(run.has_progress()) << "it waits for another start";
}

TEST(RunMachine, TakesCompleteLogsOnlyOfARunThatHasEnded) {
  ForEachPairOfStates([](v1::RunState from, v1::RunState to) {
    if (from != to && !contract::IsLegal(from, to)) return;
    agent::v1::RunEvent event;
    event.set_state(to);
    event.set_logs_complete(true);
    EXPECT_EQ(Accepts(RunIn(from), event), contract::IsTerminal(to));
  });
}

TEST(RunMachine, RestartsOnlyARunThatHasNotEnded) {
  for (int i = v1::RUN_STATE_ASSIGNED; i <= v1::RunState_MAX; ++i) {
    const auto state = static_cast<v1::RunState>(i);
    v1::Run run = RunIn(state);
    agent::v1::RunEvent event;
    event.set_state(state);
    event.set_restarts(1);
    EXPECT_EQ(Apply(event, kNow, &run) == RunStep::kRestarted, !contract::IsTerminal(state))
        << contract::Name(state);
  }
}

TEST(RunMachine, TellsItsJobTheStateThatTheContractSays) {
  for (int i = v1::RUN_STATE_ASSIGNED; i <= v1::RunState_MAX; ++i) {
    v1::Run run = RunIn(static_cast<v1::RunState>(i));
    SetTimestamp(kNow, run.mutable_start_time());
    const auto next =
        contract::Next(contract::JobStage::kPending, JobEventOf(run, /*is_followed=*/false));
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(contract::StateOf(*next), contract::JobStateFor(run.state()))
        << contract::Name(run.state());
  }
  EXPECT_EQ(JobEventOf(RunIn(v1::RUN_STATE_FINISHING), false), contract::JobEvent::kRunWaits)
      << "it never started";
  EXPECT_EQ(JobEventOf(RunIn(v1::RUN_STATE_FAILED), true), contract::JobEvent::kRetry);
}

}  // namespace
}  // namespace muster::core
