#include <gmock/gmock.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CancelTest : public testing::Test, protected CoreHarness {
 protected:
  CancelTest() { Connect(); }
};

TEST_F(CancelTest, ARunThatWaitsForItsLaunchIsCanceledWithoutOne) {
  options().max_launches_in_flight = 1;
  Start();
  Connect();
  Assign({AssignmentOf(1), AssignmentOf(2)});
  Cancel(2);
  EXPECT_EQ(State(2), v1::RUN_STATE_CANCELED);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  Launched(1);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(CancelTest, AnAssignmentThatIsAlreadyCanceledIsNotLaunched) {
  agent::v1::Assignment assignment = AssignmentOf(1);
  assignment.set_cancel_requested(true);
  Assign({assignment});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_CANCELED));
}

TEST_F(CancelTest, ACancelDuringTheLaunchFollowsIt) {
  Assign(1);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
  Launched(1);
  ASSERT_THAT(Effects<DoCancel>(), SizeIs(1));
  EXPECT_EQ(Effects<DoCancel>()[0].run.external_id, "pid-1");
}

TEST_F(CancelTest, ARunThatIsRefusedAfterItsCancelIsCanceled) {
  Assign(1);
  Cancel(1);
  agents::Launched refused{Key(1), {}};
  refused.outcome.kind = LaunchOutcome::Kind::kRefused;
  refused.outcome.failure.set_message("no such partition");
  Do(std::move(refused));
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_FALSE(NewEvents()[0].has_failure());
  EXPECT_EQ(NewEvents()[0].evidence().detail(), "canceled; no such partition");
  EXPECT_TRUE(NewEvents()[0].logs_complete());
}

// The cancel met the run in the midst of its start, or the run answers TERM by an exit code of its
// own.
TEST_F(CancelTest, ARunThatFailsAfterItsCancelIsCanceledAndKeepsWhatWasSeen) {
  Have(1);
  Cancel(1);
  Observation seen = Saw(1, v1::RUN_STATE_FAILED);
  seen.evidence.set_detail("its supervisor was killed by signal 15 and left no exit record");
  seen.failure.emplace().set_failure_class(v1::FAILURE_CLASS_INFRA);
  seen.failure->set_retriable(true);
  seen.exit.emplace().set_code(143);
  Observe(seen);
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  const agent::v1::RunEvent event = NewEvents()[0];
  EXPECT_EQ(event.state(), v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(event.has_failure());
  EXPECT_EQ(event.exit().code(), 143);
  EXPECT_EQ(event.evidence().source(), v1::EVIDENCE_SOURCE_PROCESS);
  EXPECT_EQ(event.evidence().detail(),
            "canceled; its supervisor was killed by signal 15 and left no exit record");
  ShipLogs(1);
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
}

TEST_F(CancelTest, AFailureAfterARestartIsACancelToo) {
  Have(1);
  Cancel(1);
  Start();
  Do(Tick{});
  Observe(1, v1::RUN_STATE_FAILED);
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
}

TEST_F(CancelTest, ARunOfWhichNobodyKnowsIsLostAlsoAfterItsCancel) {
  Have(1);
  Cancel(1);
  Observe(1, v1::RUN_STATE_LOST);
  EXPECT_EQ(State(1), v1::RUN_STATE_LOST);
}

TEST_F(CancelTest, ACancelIsRepeatedOnlyAfterALaterLookHasShownTheRunAlive) {
  Have(1);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  After(absl::Seconds(60));
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "the first one is still under way";
  CancelAsked(1);
  const absl::Time canceled = now();
  After(absl::Seconds(9));
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "it may still be ending";
  After(absl::Minutes(10));
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "nobody has looked";
  ObserveSince(canceled, Saw(1, v1::RUN_STATE_RUNNING));
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "the look was no later";
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  CancelAsked(1);
  After(absl::Minutes(1));
  Observe(1, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "its command has ended";
  Observe(1, v1::RUN_STATE_PENDING);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1)) << "the cluster has put it back";
  CancelAsked(1);
  Observe(1, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
  After(absl::Seconds(60));
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
}

TEST_F(CancelTest, ACancelThatFailedIsRepeatedWithoutALook) {
  Have(1);
  Cancel(1);
  CancelAsked(1, absl::UnavailableError("scancel: no answer"));
  After(absl::Seconds(9));
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
  After(absl::Seconds(1));
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
}

TEST_F(CancelTest, AChangeOfStateAfterACancelRepeatsNothing) {
  Have(1);
  Cancel(1);
  CancelAsked(1);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
}

TEST_F(CancelTest, ARepeatedWishAsksOnlyOnce) {
  Have(1);
  Cancel(1);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
  CancelAsked(1);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
}

TEST_F(CancelTest, ACancelOfAnUnknownLaunchWaitsForTheLookUp) {
  Assign(1);
  LaunchEnds(1, LaunchOutcome::Kind::kUnclear);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
}

TEST_F(CancelTest, AnUnknownLaunchThatIsAbsentIsCanceledInsteadOfLaunchedAgain) {
  Assign(1);
  LaunchEnds(1, LaunchOutcome::Kind::kUnclear);
  Cancel(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  FenceEnds(1, FenceOutcome::Kind::kNotYet);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  After(absl::Seconds(30));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  EXPECT_EQ(State(1), v1::RUN_STATE_CANCELED);
}

TEST_F(CancelTest, ARunThatSucceededBeforeTheCancelReachedItKeepsItsEnd) {
  Have(1);
  Cancel(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(State(1), v1::RUN_STATE_SUCCEEDED);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty());
}

TEST_F(CancelTest, TheWishSurvivesARestart) {
  Have(1);
  Cancel(1);
  Start();
  Do(Tick{});
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
}

TEST_F(CancelTest, AReleasedRunIsCanceledAndGoneAtItsEndWithoutEvents) {
  Have(1);
  Release(1);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  CancelAsked(1);
  EXPECT_TRUE(Holds(1));
  Observe(1, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(NewEvents(), IsEmpty());
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  EXPECT_FALSE(Holds(1));
}

TEST_F(CancelTest, AReleasedRunThatWaitsIsGoneAtOnce) {
  options().max_launches_in_flight = 1;
  Start();
  Connect();
  Assign({AssignmentOf(1), AssignmentOf(2)});
  Release(2);
  EXPECT_FALSE(Holds(2));
}

TEST_F(CancelTest, AReleaseDuringTheLaunchWaitsForItsAnswer) {
  Assign(1);
  Release(1);
  EXPECT_TRUE(Holds(1));
  LaunchEnds(1, LaunchOutcome::Kind::kUnclear);
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
}

TEST_F(CancelTest, AReleasedRunThatHasEndedIsGoneOnceTheBackendIsDoneWithIt) {
  Have(1);
  Cancel(1);
  Observe(1, v1::RUN_STATE_CANCELED);
  Release(1);
  EXPECT_TRUE(Holds(1)) << "the cancel is still under way";
  CancelAsked(1);
  EXPECT_FALSE(Holds(1));
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(CancelTest, CancelAndReleaseOfAnUnknownRunAreIgnored) {
  Cancel(7);
  Release(7);
  EXPECT_THAT(Changes<PutRun>(), IsEmpty());
  EXPECT_THAT(Effects<DoForget>(), IsEmpty());
}

}  // namespace
}  // namespace muster::agents
