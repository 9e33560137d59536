#include <gmock/gmock.h>

#include "agents/core/run_events.h"
#include "contract/sentences.h"
#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ObserveTest : public testing::Test, protected CoreHarness {
 protected:
  ObserveTest() { Connect(); }
};

TEST_F(ObserveTest, OnlyRunsThatTheClusterHasAreObserved) {
  options().max_launches_in_flight = 2;
  Start();
  Connect();
  Have(1);
  Assign({AssignmentOf(2), AssignmentOf(3), AssignmentOf(4)});
  LaunchEnds(2, LaunchOutcome::Kind::kUnclear);
  ASSERT_THAT(core().RunsToObserve(), SizeIs(1));
  EXPECT_EQ(core().RunsToObserve()[0].run_key, Key(1));
  EXPECT_THAT(core().AllRuns(), SizeIs(4));
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(core().RunsToObserve(), IsEmpty());
}

TEST_F(ObserveTest, AnEndThatWasReadWhileALaterLookSawTheRunAgainIsNotItsEnd) {
  Have(1);
  const absl::Time first_look = now();
  After(absl::Seconds(10));
  Observe(1, v1::RUN_STATE_PENDING);
  Observe(1, v1::RUN_STATE_RUNNING);
  for (const v1::RunState state : {v1::RUN_STATE_FINISHING, v1::RUN_STATE_FAILED}) {
    Do(EndsRead{.observations = {Saw(1, state)}, .began = first_look});
    EXPECT_EQ(State(1), v1::RUN_STATE_RUNNING);
  }
  Do(EndsRead{.observations = {Saw(1, v1::RUN_STATE_SUCCEEDED)}, .began = now()});
  EXPECT_EQ(State(1), v1::RUN_STATE_SUCCEEDED);
}

TEST_F(ObserveTest, AChangeOfStateIsAnEventAndARepetitionIsNone) {
  Have(1);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_RUNNING));
  EXPECT_EQ(NewEvents()[0].evidence().source(), v1::EVIDENCE_SOURCE_PROCESS);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ObserveTest, AChangedDetailAloneIsAnEventWithOnlyThatDetail) {
  Have(1);
  Observation waits = Saw(1, v1::RUN_STATE_PENDING);
  waits.reason = contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = "Resources"});
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state_reason().message(), "Resources");
  EXPECT_EQ(NewEvents()[0].external_id(), "");
  Observe(waits);
  EXPECT_THAT(NewEvents(), IsEmpty());
  waits.nodes = {"n1", "n2"};
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state_reason().message(), "");
  EXPECT_THAT(NewEvents()[0].nodes(), ElementsAre("n1", "n2"));
}

TEST_F(ObserveTest, AnEstimateIsInEveryEventAndASmallMoveOfItIsNone) {
  Have(1);
  Observation waits = Saw(1, v1::RUN_STATE_PENDING);
  const absl::Time estimate = absl::FromUnixSeconds(1'800'000'000);
  waits.estimated_start = estimate;
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].estimated_start_time().seconds(), 1'800'000'000);
  waits.estimated_start = estimate + kMinEstimateMove - absl::Seconds(1);
  Observe(waits);
  EXPECT_THAT(NewEvents(), IsEmpty());
  waits.reason = contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = "another one"});
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].estimated_start_time().seconds(), 1'800'000'000);
  waits.estimated_start = estimate + kMinEstimateMove;
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].estimated_start_time().seconds(), 1'800'000'300);
  waits.estimated_start.reset();
  Observe(waits);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_FALSE(NewEvents()[0].has_estimated_start_time());
}

TEST_F(ObserveTest, ARestartIsToldAlsoIfItsStatesWereNotSeen) {
  Have(1);
  Observation runs = Saw(1, v1::RUN_STATE_RUNNING);
  Observe(runs);
  runs.restarts = 1;
  Observe(runs);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].restarts(), 1u);
  Observe(runs);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ObserveTest, TheEndCarriesExitFailureAndTimes) {
  Have(1);
  Observation end = Saw(1, v1::RUN_STATE_FAILED);
  end.exit.emplace().set_code(3);
  end.failure.emplace().set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  end.start_time = absl::FromUnixSeconds(5);
  end.end_time = absl::FromUnixMillis(7500);
  Observe(end);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  const agent::v1::RunEvent event = NewEvents()[0];
  EXPECT_EQ(event.exit().code(), 3);
  EXPECT_EQ(event.failure().failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(event.start_time().seconds(), 5);
  EXPECT_EQ(event.end_time().seconds(), 7);
  EXPECT_EQ(event.end_time().nanos(), 500'000'000);
}

TEST_F(ObserveTest, DetailsThatWereNotSeenAreNotInTheEvent) {
  Have(1);
  Observe(1, v1::RUN_STATE_RUNNING);
  const agent::v1::RunEvent event = NewEvents()[0];
  EXPECT_FALSE(event.has_start_time());
  EXPECT_FALSE(event.has_exit());
  EXPECT_FALSE(event.has_failure());
}

TEST_F(ObserveTest, AnExitCodeOfZeroIsTold) {
  Have(1);
  Observation end = Saw(1, v1::RUN_STATE_SUCCEEDED);
  end.exit.emplace();
  Observe(end);
  EXPECT_TRUE(NewEvents()[0].has_exit());
}

TEST_F(ObserveTest, AnIllegalStepBackIsIgnored) {
  Have(1);
  Observe(1, v1::RUN_STATE_FINISHING);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(State(1), v1::RUN_STATE_FINISHING);
  Observe(1, v1::RUN_STATE_LAUNCHING);
  Observe(1, v1::RUN_STATE_UNSPECIFIED);
  EXPECT_EQ(State(1), v1::RUN_STATE_FINISHING);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ObserveTest, ARequeueTellsEverythingAnew) {
  Have(1);
  Observation runs = Saw(1, v1::RUN_STATE_RUNNING);
  runs.nodes = {"n1"};
  Observe(runs);
  Observe(1, v1::RUN_STATE_PENDING);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING);
  Observe(runs);
  EXPECT_THAT(NewEvents()[0].nodes(), ElementsAre("n1"));
}

TEST_F(ObserveTest, ATerminalStateNeverChanges) {
  Have(1);
  Observe(1, v1::RUN_STATE_FAILED);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  Observe(1, v1::RUN_STATE_PENDING);
  EXPECT_EQ(State(1), v1::RUN_STATE_FAILED);
}

TEST_F(ObserveTest, AnObservationDoesNotStandInForTheAnswerToALaunch) {
  Assign(1);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCHING);
  LaunchEnds(1, LaunchOutcome::Kind::kUnclear);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
}

TEST_F(ObserveTest, LogsAreShippedFromTheFirstStartToTheEnd) {
  Have(1);
  EXPECT_THAT(Effects<agents::ShipLogs>(), IsEmpty());
  Observe(1, v1::RUN_STATE_STARTING);
  ASSERT_THAT(Effects<agents::ShipLogs>(), SizeIs(1));
  EXPECT_FALSE(Effects<agents::ShipLogs>()[0].ended);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<agents::ShipLogs>(), IsEmpty());
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ASSERT_THAT(Effects<agents::ShipLogs>(), SizeIs(1));
  EXPECT_TRUE(Effects<agents::ShipLogs>()[0].ended);
}

TEST_F(ObserveTest, ALostRunStillShipsWhatThereIs) {
  Have(1);
  Observe(1, v1::RUN_STATE_LOST);
  ASSERT_THAT(Effects<agents::ShipLogs>(), SizeIs(1));
  EXPECT_TRUE(Effects<agents::ShipLogs>()[0].ended);
}

TEST_F(ObserveTest, AfterARestartLogsAreShippedAgain) {
  Have(1);
  Have(2);
  Observe(1, v1::RUN_STATE_RUNNING);
  Observe(2, v1::RUN_STATE_SUCCEEDED);
  Start();
  Do(Tick{});
  ASSERT_THAT(Effects<agents::ShipLogs>(), SizeIs(2));
  EXPECT_FALSE(Effects<agents::ShipLogs>()[0].ended);
  EXPECT_TRUE(Effects<agents::ShipLogs>()[1].ended);
}

TEST_F(ObserveTest, ForeignBytesNeverReachTheBroker) {
  Have(1);
  Observation odd = Saw(1, v1::RUN_STATE_FAILED);
  odd.reason = contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = "bad \xff byte"});
  odd.failure.emplace().set_message(std::string(5000, 'x') + "\xc3");
  odd.evidence.set_detail("\xe2\x82\xac ok \xe2\x82");
  Observe(odd);
  const agent::v1::RunEvent event = NewEvents()[0];
  EXPECT_EQ(event.state_reason().message(), "bad ? byte");
  EXPECT_EQ(event.failure().message().size(), 4096);
  EXPECT_EQ(event.evidence().detail(), "\xe2\x82\xac ok ??");
}

}  // namespace
}  // namespace muster::agents
