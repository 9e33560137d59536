// Runs that are to end, and of which nobody knows whether their cluster has them.
#include <gmock/gmock.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Fence = FenceOutcome::Kind;

class FenceTest : public testing::Test, protected CoreHarness {
 protected:
  FenceTest() {
    options().lookup_grace = absl::Seconds(30);
    options().lookup_interval = absl::Seconds(2);
    Start();
    Connect();
    Assign(1);
    LaunchEnds(1, LaunchOutcome::Kind::kUnclear);
  }
  // The run is to end, and the fence was asked for.
  void AskFence() {
    Cancel(1);
    EXPECT_THAT(Effects<DoFence>(), IsEmpty()) << "the look-up comes first";
    LookupEnds(1, LookupOutcome::Kind::kAbsent);
    ASSERT_THAT(Effects<DoFence>(), SizeIs(1));
    EXPECT_TRUE(Effects<DoFence>()[0].run.cancel_requested);
    EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  }
};

TEST_F(FenceTest, AProofCancelsTheRunAtOnceAndIsItsEvidence) {
  AskFence();
  FenceEnds(1, Fence::kNeverBegins, "no job can begin any more");
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_CANCELED));
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].evidence().detail(), "no job can begin any more");
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  Ack(NewEvents()[0].sequence());
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(FenceTest, WithoutAProofTheRunIsLookedUpForTheWholeGrace) {
  AskFence();
  for (int seconds = 2; seconds < 30; seconds += 2) {
    FenceEnds(1, Fence::kNotYet, "the file server is away");
    EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
    After(absl::Seconds(2));
    ASSERT_THAT(Effects<DoLookup>(), SizeIs(1)) << seconds;
    LookupEnds(1, LookupOutcome::Kind::kAbsent);
    ASSERT_THAT(Effects<DoFence>(), SizeIs(1)) << seconds;
  }
  FenceEnds(1, Fence::kNotYet);
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kAbsent, "squeue does not have it");
  EXPECT_THAT(NewStates(), ElementsAre(v1::RUN_STATE_CANCELED));
  EXPECT_EQ(NewEvents()[0].evidence().detail(), "squeue does not have it");
}

TEST_F(FenceTest, AProofThatIsImpossibleIsNotAskedForAgain) {
  AskFence();
  FenceEnds(1, Fence::kImpossible);
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoFence>(), IsEmpty());
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
}

TEST_F(FenceTest, ARunThatShowsAfterAllIsEnded) {
  AskFence();
  FenceEnds(1, Fence::kNotYet);
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
}

TEST_F(FenceTest, ARunThatHasEndedMeanwhileKeepsItsOwnEnd) {
  AskFence();
  FenceEnds(1, Fence::kEnded);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN) << "no cancel ended it";
  After(absl::Seconds(2));
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_EQ(State(1), v1::RUN_STATE_PENDING) << "its end is observed";
}

TEST_F(FenceTest, ARunThatTheBrokerHasReleasedGoesWithItsProof) {
  Release(1);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  ASSERT_THAT(Effects<DoFence>(), SizeIs(1));
  FenceEnds(1, Fence::kNeverBegins);
  EXPECT_THAT(NewEvents(), IsEmpty());
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  EXPECT_FALSE(Holds(1));
}

TEST_F(FenceTest, ARunThatIsWantedIsNeverFenced) {
  for (int seconds = 0; seconds < 30; seconds += 2) {
    LookupEnds(1, LookupOutcome::Kind::kAbsent);
    EXPECT_THAT(Effects<DoFence>(), IsEmpty()) << seconds;
    After(absl::Seconds(2));
  }
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

TEST_F(FenceTest, AFenceThatIsUnderWayWhenTheAgentDiesIsAskedForAgain) {
  AskFence();
  Start();
  Connect();
  After(absl::ZeroDuration());
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoFence>(), SizeIs(1)) << "a cancel needs no word of the broker";
}

TEST_F(FenceTest, AnAnswerThatNobodyWaitsForChangesNothing) {
  FenceEnds(1, Fence::kNeverBegins);
  EXPECT_EQ(State(1), v1::RUN_STATE_LAUNCH_UNKNOWN);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

}  // namespace
}  // namespace muster::agents
