// Starts after a restart: the agent starts nothing before the broker has said what it still wants.
#include <gmock/gmock.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class FirstWordTest : public testing::Test, protected CoreHarness {
 protected:
  // A process that died with a run in ASSIGNED (2) and one that was launched (1).
  FirstWordTest() {
    options().max_launches_in_flight = 1;
    Start();
    Connect();
    Have(1);
    Assign({AssignmentOf(8), AssignmentOf(2)});
    LaunchEnds(8, LaunchOutcome::Kind::kRefused);
    ReviveAs(2, v1::RUN_STATE_ASSIGNED);
  }

  // Puts a run back into the state that it had before the process went on.
  void ReviveAs(uint64_t job, v1::RunState state) {
    for (JournalRun& run : mutable_journal().runs) {
      if (run.assignment->run_key() == Key(job)) run.state = state;
    }
    Start();
    Do(Tick{});
  }
};

TEST_F(FirstWordTest, NothingIsLaunchedBeforeTheBrokerAnswersTheFirstHeartbeat) {
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  After(absl::Hours(5));
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty()) << "there is no time-out";
  Do(LinkUp{});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  Do(BrokerSaid{WelcomeMessage()});
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
  Ack(0);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
  EXPECT_THAT(Effects<DoAllowStarts>(), SizeIs(1));
}

TEST_F(FirstWordTest, AHeartbeatAsksForItAtOnce) {
  Connect();
  int heartbeats = 0;
  for (const SendToBroker& send : Effects<SendToBroker>()) {
    heartbeats += send.message.has_heartbeat();
  }
  EXPECT_EQ(heartbeats, 1);
}

TEST_F(FirstWordTest, ARunThatWasCanceledMeanwhileIsNeverLaunched) {
  Connect();
  Cancel(2);
  EXPECT_EQ(State(2), v1::RUN_STATE_CANCELED);
  Ack(0);
  EXPECT_THAT(Effects<DoLaunch>(), IsEmpty());
}

TEST_F(FirstWordTest, TheBackendStartsNothingBeforeItWasAskedForTheCancels) {
  Connect();
  Cancel(1);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  Ack(0);
  EXPECT_THAT(Effects<DoAllowStarts>(), IsEmpty());
  CancelAsked(1);
  EXPECT_THAT(Effects<DoAllowStarts>(), SizeIs(1));
  After(absl::Hours(1));
  EXPECT_THAT(Effects<DoAllowStarts>(), IsEmpty()) << "once";
}

TEST_F(FirstWordTest, ACancelOfARunThatIsLookedUpComesFirstToo) {
  ReviveAs(1, v1::RUN_STATE_LAUNCH_UNKNOWN);
  Connect();
  Cancel(1);
  Ack(0);
  EXPECT_THAT(Effects<DoAllowStarts>(), IsEmpty());
  LookupEnds(1, LookupOutcome::Kind::kFound);
  EXPECT_THAT(Effects<DoCancel>(), SizeIs(1));
  EXPECT_THAT(Effects<DoAllowStarts>(), IsEmpty());
  CancelAsked(1);
  EXPECT_THAT(Effects<DoAllowStarts>(), SizeIs(1));
}

TEST_F(FirstWordTest, ALookUpThatGetsNoAnswerHoldsNothingUp) {
  ReviveAs(1, v1::RUN_STATE_LAUNCH_UNKNOWN);
  Connect();
  Cancel(1);
  Ack(0);
  LookupEnds(1, LookupOutcome::Kind::kCouldNotAsk);
  EXPECT_THAT(Effects<DoAllowStarts>(), SizeIs(1));
}

TEST_F(FirstWordTest, AnUnknownLaunchIsNotRepeatedBefore) {
  ReviveAs(1, v1::RUN_STATE_LAUNCH_UNKNOWN);
  for (int i = 0; i < 100; ++i) {
    LookupEnds(1, LookupOutcome::Kind::kAbsent);
    ASSERT_THAT(Effects<DoLaunch>(), IsEmpty());
    After(absl::Seconds(2));
  }
  Cancel(2);  // from nobody: there is no connection
  Connect();
  Cancel(2);
  Ack(0);
  LookupEnds(1, LookupOutcome::Kind::kAbsent);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

TEST_F(FirstWordTest, ALostLinkHoldsNothingBackAfterwards) {
  Connect();
  Ack(0);
  Assign(3);
  EXPECT_EQ(State(3), v1::RUN_STATE_ASSIGNED);
  Do(LinkDown{});
  LaunchEnds(2, LaunchOutcome::Kind::kRefused);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

TEST_F(FirstWordTest, WhatRunsIsSeenToEndAndItsLogsAreShippedBefore) {
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Effects<agents::ShipLogs>(), SizeIs(1));
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(State(1), v1::RUN_STATE_SUCCEEDED);
}

TEST_F(FirstWordTest, AnAgentThatHoldsNothingWaitsForNothing) {
  mutable_journal().runs.clear();
  Start();
  Connect();
  Assign(3);
  EXPECT_THAT(Effects<DoLaunch>(), SizeIs(1));
}

}  // namespace
}  // namespace muster::agents
