#include <gmock/gmock.h>

#include "agents/core/array_gathering.h"
#include "agents/core/run_events.h"
#include "contract/task_array.h"
#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LaunchTest : public testing::Test, protected CoreHarness {
 protected:
  LaunchTest() { Connect(); }

  // A run in LAUNCH_UNKNOWN whose look-up is under way.
  void HaveUnknown(uint64_t job) {
    Assign(job);
    LaunchEnds(job, LaunchOutcome::Kind::kUnclear);
  }
};

TEST_F(LaunchTest, TheIntentIsInTheSameOutputAsTheLaunch) {
  Assign(1);
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(Effects<DoLaunch>()[0].run.run_key, Key(1));
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCHING);
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_LAUNCHING));
}

TEST_F(LaunchTest, ALaunchedRunIsPendingWithItsExternalId) {
  Assign(1);
  Launched(1);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].external_id(), "pid-1");
  EXPECT_EQ(journal().runs[0].external_id, "pid-1");
}

TEST_F(LaunchTest, AnAssignmentThatIsHeldIsIgnored) {
  Assign(1);
  Assign(1);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_THAT(Changes<PutRun>(), IsEmpty());
}

TEST_F(LaunchTest, AMalformedRunKeyEndsTheConnectionAndReachesNoBackend) {
  agent::v1::Assignment assignment = AssignmentOf(1);
  assignment.set_run_key("../../etc/passwd");
  Assign({assignment});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
}

TEST_F(LaunchTest, OnlySoManyRunsAreLaunchedAtOnceAndTheRestStaysAssigned) {
  std::vector<agent::v1::Assignment> six;
  for (uint64_t job = 1; job <= 6; ++job) six.push_back(AssignmentOf(job));
  Assign(six);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(4));
  EXPECT_EQ(State(5), v1::RUN_STATE_ASSIGNED);
  Launched(2);
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(Effects<DoLaunch>()[0].run.run_key, Key(5));
}

TEST_F(LaunchTest, ARefusedRunFailsAsConfigAndNeedsNoLogs) {
  Assign(1);
  LaunchEnds(1, LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(State(1), v1::RUN_STATE_FAILED);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].failure().failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  EXPECT_THAT(Effects<agents::ShipLogs>(), IsEmpty());
}

TEST_F(LaunchTest, ARefusalKeepsTheClassThatTheBackendGave) {
  Assign(1);
  agents::Launched launched{Key(1), {}};
  launched.outcome.kind = LaunchOutcome::Kind::kRefused;
  launched.outcome.failure.set_failure_class(v1::FAILURE_CLASS_INFRA);
  Do(launched);
  EXPECT_EQ(NewEvents()[0].failure().failure_class(), v1::FAILURE_CLASS_INFRA);
}

TEST_F(LaunchTest, AnUnclearLaunchIsLookedUpAtOnce) {
  HaveUnknown(1);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  EXPECT_THAT(Effects<DoLookup>(), SizeIs(1));
}

TEST_F(LaunchTest, AnAssignmentThatMayHaveBeenLaunchedIsLookedUpFirst) {
  agent::v1::Assignment assignment = AssignmentOf(1);
  assignment.set_may_have_been_launched(true);
  Assign({assignment});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_THAT(Effects<DoLookup>(), SizeIs(1));
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
}

TEST_F(LaunchTest, ARunThatIsFoundIsAdopted) {
  HaveUnknown(1);
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING);
  EXPECT_EQ(NewEvents()[0].external_id(), "pid-found");
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(LaunchTest, AbsentOverTheWholeGracePeriodLaunchesAgain) {
  HaveUnknown(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  for (int seconds = 2; seconds < 30; seconds += 2) {
    After(absl::Seconds(2));
    ASSERT_THAT(Effects<DoLookup>(), SizeIs(1)) << seconds;
    LookupEnds(1, LookupOutcome::Kind::kAbsent);
    ASSERT_THAT(Effects<DoLaunch>(), IsEmpty()) << seconds;
  }
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCHING);
}

TEST_F(LaunchTest, ASlowAnswerDoesNotCountForTheGracePeriod) {
  HaveUnknown(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  After(absl::Seconds(2));
  After(absl::Seconds(60));  // the scheduler takes its time with the second look-up
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(LaunchTest, AnotherAnswerBetweenStartsTheGracePeriodAgain) {
  HaveUnknown(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  After(absl::Seconds(20));
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  After(absl::Seconds(20));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  After(absl::Seconds(30));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

TEST_F(LaunchTest, WhyNobodyCanTellIsToldAnewButNotWithEachLookUp) {
  HaveUnknown(1);
  After(kMinWhyInterval);
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk, "others have 9 of 10");
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state_reason().message(), "others have 9 of 10");
  EXPECT_EQ(NewEvents()[0].state(), v1::RUN_STATE_LAUNCH_UNKNOWN);
  EXPECT_THAT(Effects<DoLookup>(), IsEmpty()) << "the next one comes in its time";
  After(options().lookup_interval);
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk, "others have 8 of 10");
  EXPECT_THAT(NewEvents(), IsEmpty());
  After(kMinWhyInterval);
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk, "others have 9 of 10");
  EXPECT_THAT(NewEvents(), IsEmpty()) << "that has been told";
  After(kMinWhyInterval);
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk, "others have 8 of 10");
  EXPECT_THAT(NewEvents(), SizeIs(1));
}

TEST_F(LaunchTest, OneAbsentIsNeverEnoughEvenWithoutAGracePeriod) {
  options().lookup_grace = absl::ZeroDuration();
  Start();
  Connect();
  HaveUnknown(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

TEST_F(LaunchTest, ADeferredLaunchIsRepeatedWithoutALookUp) {
  Assign(1);
  for (int i = 0; i < 3; ++i) {
    LaunchEnds(1, LaunchOutcome::Kind::kDeferred);
    EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
    EXPECT_THAT(Effects<DoLookup>(), IsEmpty());
    EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCHING);
  }
  Launched(1);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING);
}

TEST_F(LaunchTest, ADeferredLaunchWaitsAsLongAsItsBackendSaysAndGivesUpItsPlace) {
  options().max_launches_in_flight = 1;
  Start();
  Connect();
  Assign({AssignmentOf(1), AssignmentOf(2)});
  Defer(1, absl::Seconds(5), "its image is being converted");
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(Effects<DoLaunch>()[0].run.run_key, Key(2));
  Launched(2);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  After(absl::Seconds(5));
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(Effects<DoLaunch>()[0].run.run_key, Key(1));
}

TEST_F(LaunchTest, WhyALaunchIsDeferredIsToldOnceAndThenNowAndThen) {
  Assign(1);
  Defer(1, absl::Seconds(5), "9 of 10 are done");
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state(), v1::RUN_STATE_LAUNCHING);
  EXPECT_EQ(NewEvents()[0].state_reason().code(), v1::STATE_REASON_CODE_LAUNCH_DEFERRED);
  EXPECT_THAT(NewEvents()[0].state_reason().message(), HasSubstr("9 of 10 are done"));
  After(absl::Seconds(5));
  EXPECT_THAT(NewEvents(), IsEmpty()) << "the launch is tried again";
  Defer(1, absl::Seconds(5), "10 of 10 are done");
  EXPECT_THAT(NewEvents(), IsEmpty());
  After(kMinWhyInterval);
  Defer(1, absl::Seconds(5), "10 of 10 are done");
  EXPECT_THAT(NewEvents(), SizeIs(1));
}

TEST_F(LaunchTest, ADeferredLaunchThatIsCanceledIsNotRepeated) {
  Assign(1);
  Cancel(1);
  LaunchEnds(1, LaunchOutcome::Kind::kDeferred);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
}

TEST_F(LaunchTest, ACancelEndsARunWhoseLaunchIsDeferredAtOnce) {
  Assign(1);
  Defer(1, absl::Hours(1), "its image is being converted");
  Cancel(1);
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "the cluster does not have it";
  After(absl::Hours(1));
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(LaunchTest, ADeferredLaunchIsNotRepeatedByAnAgentThatStops) {
  Assign(1);
  Do(Drain{});
  LaunchEnds(1, LaunchOutcome::Kind::kDeferred);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  Start();
  Do(Tick{});
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  EXPECT_THAT(Effects<DoLookup>(), SizeIs(1));
}

TEST_F(LaunchTest, AnAnswerThatNobodyWaitsForChangesNothing) {
  Have(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  Launched(1);
  EXPECT_THAT(Changes<PutEvent>(), IsEmpty());
  LaunchEnds(2, LaunchOutcome::Kind::kUnclear);
  EXPECT_THAT(Changes<PutRun>(), IsEmpty());
}

TEST_F(LaunchTest, WhyALaunchIsUnclearIsTheRunsReason) {
  Assign(1);
  LaunchOutcome outcome;
  outcome.evidence.set_detail("403 Forbidden: create jobs");
  Do(agents::Launched{Key(1), outcome});
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state_reason().message(), "403 Forbidden: create jobs");
}

TEST_F(LaunchTest, AfterARestartDuringALaunchTheRunIsLookedUp) {
  Assign(1);
  Start();
  Do(Tick{});
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  EXPECT_THAT(Effects<DoLookup>(), SizeIs(1));
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(LaunchTest, AfterARestartAssignedRunsAreLaunched) {
  options().max_launches_in_flight = 1;
  Start();
  Connect();
  Assign({AssignmentOf(1), AssignmentOf(2)});
  EXPECT_EQ(State(2), v1::RUN_STATE_ASSIGNED);
  Start();
  Connect();
  Ack(0);
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_EQ(Effects<DoLaunch>()[0].run.run_key, Key(2));
}

TEST_F(LaunchTest, RunsThatBringFilesAlongAreLaunchedBesideTheOthersAndFewAtOnce) {
  options().max_launches_in_flight = 1;
  options().max_file_launches_in_flight = 1;
  Start();
  Connect();
  std::vector<agent::v1::Assignment> runs = {AssignmentOf(1), AssignmentOf(2), AssignmentOf(3)};
  runs[0].mutable_spec()->add_uploads();
  runs[1].mutable_spec()->add_uploads();
  Assign(runs);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCHING);
  EXPECT_EQ(State(2), v1::RUN_STATE_ASSIGNED);
  EXPECT_EQ(State(3), v1::RUN_STATE_LAUNCHING);
  Launched(3);
  EXPECT_EQ(State(2), v1::RUN_STATE_ASSIGNED);
  Launched(1);
  EXPECT_EQ(State(2), v1::RUN_STATE_LAUNCHING);
}

TEST_F(LaunchTest, AfterARestartLookUpsGoOn) {
  HaveUnknown(1);
  Start();
  Do(Tick{});
  EXPECT_THAT(Effects<DoLookup>(), SizeIs(1));
  EXPECT_THAT(NewEvents(), IsEmpty());
}

class ArrayLaunchTest : public LaunchTest {
 protected:
  ArrayLaunchTest() {
    options().gathers_arrays = true;
    Start();
    Connect();
  }
  // Makes task `place` of an array of three.
  static agent::v1::Assignment TaskOf(uint32_t place) {
    agent::v1::Assignment assignment = AssignmentOf(7 + place);
    assignment.mutable_spec()->mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = place, .count = 3, .max_id = 2, .place = place},
                           assignment.mutable_spec());
    return assignment;
  }
};

TEST_F(ArrayLaunchTest, TheTasksOfAnArrayAreLaunchedTogetherOnceAllAreThere) {
  Assign({TaskOf(0), TaskOf(1)});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  Assign({AssignmentOf(3)});
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1)) << "others do not wait for them";
  Assign({TaskOf(2)});
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(3));
}

TEST_F(ArrayLaunchTest, OnesThatDoNotComeAreNotWaitedForForLong) {
  Assign({TaskOf(0), TaskOf(2)});
  After(kArrayPatience - absl::Seconds(1));
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  After(absl::Seconds(1));
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(2));
}

TEST_F(ArrayLaunchTest, ATaskThatIsCanceledMeanwhileIsNotLaunched) {
  Assign({TaskOf(0), TaskOf(1)});
  agent::v1::Assignment canceled = TaskOf(1);
  canceled.set_cancel_requested(true);
  Assign({canceled});
  EXPECT_EQ(State(8), v1::RUN_STATE_CANCELED);
  After(kArrayPatience);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

// An answer was lost, and the cluster has none of them.
TEST_F(ArrayLaunchTest, TasksThatWereLookedUpOneByOneAreLaunchedTogetherAgain) {
  options().lookup_grace = absl::ZeroDuration();
  Start();
  Connect();
  Assign({TaskOf(0), TaskOf(1), TaskOf(2)});
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(3));
  for (const uint64_t job : {7, 8, 9}) LaunchEnds(job, LaunchOutcome::Kind::kUnclear);
  for (const uint64_t job : {7, 8, 9}) LookupEnds(job, LookupOutcome::Kind::kAbsent);
  After(options().lookup_interval);
  for (const uint64_t job : {7, 8}) {
    LookupEnds(job, LookupOutcome::Kind::kAbsent);
    EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
    EXPECT_EQ(State(job), v1::RUN_STATE_LAUNCHING);
  }
  LookupEnds(9, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(3));
}

}  // namespace
}  // namespace muster::agents
