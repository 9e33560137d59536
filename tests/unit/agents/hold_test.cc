// Runs that the broker holds back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class HoldTest : public testing::Test, public CoreHarness {
 protected:
  HoldTest() { Connect(); }

  const Output& Hold(uint64_t job, bool held = true) {
    agent::v1::ConnectResponse message;
    message.mutable_holds()->set_held(held);
    message.mutable_holds()->add_run_keys(Key(job));
    return Do(BrokerSaid{message});
  }
  const Output& HoldEnds(uint64_t job, bool held, absl::Status status = {}) {
    return Do(HoldAsked{Key(job), held, std::move(status)});
  }
  // Returns the holds that the last input asked of the cluster.
  std::vector<bool> Asked() const {
    std::vector<bool> asked;
    for (const DoHold& hold : Effects<DoHold>()) asked.push_back(hold.held);
    return asked;
  }
};

TEST_F(HoldTest, ARunThatWaitsIsHeldAndReleasedOnceEach) {
  Have(1);
  Hold(1);
  EXPECT_THAT(Asked(), ElementsAre(true));
  HoldEnds(1, true);
  Hold(1);
  EXPECT_THAT(Asked(), IsEmpty()) << "the cluster knows";
  Hold(1, false);
  EXPECT_THAT(Asked(), ElementsAre(false));
  HoldEnds(1, false);
  After(absl::Minutes(1));
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(HoldTest, AnAssignmentThatIsHeldIsLaunchedHeld) {
  agent::v1::Assignment assignment = AssignmentOf(1);
  assignment.set_held(true);
  Assign({assignment});
  ASSERT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_TRUE(Effects<DoLaunch>()[0].run.assignment->held());
  Launched(1);
  EXPECT_THAT(Asked(), IsEmpty()) << "its launch said so";
  Hold(1, false);
  EXPECT_THAT(Asked(), ElementsAre(false));
}

TEST_F(HoldTest, AHoldDuringTheLaunchFollowsIt) {
  Assign(1);
  Hold(1);
  EXPECT_THAT(Asked(), IsEmpty());
  Launched(1);
  EXPECT_THAT(Asked(), ElementsAre(true));
}

TEST_F(HoldTest, ALaunchThatIsUnderWayHearsOfEachWish) {
  const auto notes = [this] {
    std::vector<bool> held;
    for (const DoNoteHold& note : Effects<DoNoteHold>()) held.push_back(note.held);
    return held;
  };
  Assign(1);
  Hold(1);
  EXPECT_THAT(notes(), ElementsAre(true));
  Hold(1, false);
  EXPECT_THAT(notes(), ElementsAre(false));
  Launched(1);
  EXPECT_THAT(Asked(), IsEmpty()) << "it was launched so, and has heard all wishes since";
  Hold(1);
  EXPECT_THAT(notes(), IsEmpty()) << "the cluster has it, and is asked";
}

TEST_F(HoldTest, AHoldThatFailedMayHaveBeenCarriedOutAndIsTakenBack) {
  Have(1);
  Hold(1, false);
  HoldEnds(1, false);
  Hold(1);
  Hold(1, false);
  HoldEnds(1, true, absl::DeadlineExceededError("no answer"));
  After(options().cancel_interval);
  EXPECT_THAT(Asked(), ElementsAre(false));
}

TEST_F(HoldTest, AWishThatChangesWhileTheClusterIsAskedFollows) {
  Have(1);
  Hold(1);
  Hold(1, false);
  EXPECT_THAT(Asked(), IsEmpty()) << "one call at a time";
  HoldEnds(1, true);
  EXPECT_THAT(Asked(), ElementsAre(false));
}

TEST_F(HoldTest, AHoldThatFailsIsToldOnceAndRepeated) {
  Have(1);
  Hold(1);
  HoldEnds(1, true, absl::UnavailableError("scontrol: no answer"));
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state(), v1::RUN_STATE_PENDING);
  EXPECT_THAT(NewEvents()[0].state_reason().message(), HasSubstr("scontrol: no answer"));
  After(options().cancel_interval);
  EXPECT_THAT(Asked(), ElementsAre(true));
  HoldEnds(1, true, absl::UnavailableError("scontrol: no answer"));
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(HoldTest, ARunThatRunsIsLeftAloneAndHeldWhenItIsRequeued) {
  Have(1);
  Observe(1, v1::RUN_STATE_RUNNING);
  Hold(1);
  EXPECT_THAT(Asked(), IsEmpty());
  Observe(1, v1::RUN_STATE_PENDING);
  EXPECT_THAT(Asked(), ElementsAre(true));
}

TEST_F(HoldTest, ACancelGoesBeforeAHold) {
  Have(1);
  Hold(1);
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), IsEmpty()) << "one call at a time";
  HoldEnds(1, true, absl::UnavailableError("no answer"));
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  Have(2);
  Hold(2);
  HoldEnds(2, true, absl::UnavailableError("no answer"));
  Cancel(2);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1)) << "though the hold waits to be repeated";
}

TEST_F(HoldTest, AfterARestartNothingStartsBeforeTheHoldsAreAskedFor) {
  Have(1);
  Hold(1);
  HoldEnds(1, true);
  Start();
  Connect();
  Hold(1);
  EXPECT_THAT(Asked(), ElementsAre(true)) << "what the last process knew is gone";
  Ack(0);
  EXPECT_THAT(Effects<DoAllowStarts>(), IsEmpty());
  HoldEnds(1, true);
  EXPECT_THAT(Effects<DoAllowStarts>(), SizeIs(1));
}

TEST_F(HoldTest, ARunIsForgottenOnlyAfterTheCallForIt) {
  Have(1);
  Hold(1);
  Observe(1, v1::RUN_STATE_CANCELED);
  Release(1);
  EXPECT_THAT(Effects<DoForget>(), IsEmpty());
  HoldEnds(1, true);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

}  // namespace
}  // namespace muster::agents
