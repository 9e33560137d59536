#include <gmock/gmock.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EventsTest : public testing::Test, protected CoreHarness {
 protected:
  EventsTest() { Connect(); }
};

TEST_F(EventsTest, EventsAreNumberedWithoutGapsAndSentAsTheyHappen) {
  Assign(1);
  EXPECT_THAT(Sent(), ElementsAre(1));
  Launched(1);
  EXPECT_THAT(Sent(), ElementsAre(2));
  EXPECT_THAT(journal().events, SizeIs(2));
  EXPECT_EQ(journal().meta.next_event_sequence, 3);
}

TEST_F(EventsTest, AcknowledgedEventsLeaveTheJournalAndTheRestIsSentAgain) {
  Have(1);
  Have(2);
  Ack(3);
  EXPECT_THAT(journal().events, SizeIs(1));
  Connect(3);
  EXPECT_THAT(Sent(), ElementsAre(4));
}

TEST_F(EventsTest, AWelcomeAcknowledgesWhatALostAckWouldHave) {
  Have(1);
  Connect(2);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_THAT(journal().events, IsEmpty());
}

TEST_F(EventsTest, NumbersGoOnAfterARestartEvenIfAllWereAcknowledged) {
  Have(1);
  Ack(2);
  Start();
  Connect(2);
  Observe(1, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(Sent(), ElementsAre(3));
}

TEST_F(EventsTest, OnlySoManyEventsAreInFlight) {
  options().max_unacked_events = 3;
  Start();
  Connect();
  Have(1);
  Have(2);
  EXPECT_THAT(Sent(), IsEmpty()) << "the fourth waits";
  Ack(2);
  EXPECT_THAT(Sent(), ElementsAre(4));
}

TEST_F(EventsTest, AnAcknowledgementAheadOfWhatWasSentIsTaken) {
  options().max_unacked_events = 1;
  Start();
  Connect();
  Have(1);
  Have(2);
  Ack(2);
  EXPECT_THAT(Sent(), ElementsAre(3));
}

TEST_F(EventsTest, OnlySoManyBytesOfEventsAreInFlight) {
  options().max_unacked_event_bytes = 1;  // the event that goes beyond is sent whole
  Start();
  Connect();
  Assign({AssignmentOf(1), AssignmentOf(2)});
  EXPECT_THAT(Sent(), ElementsAre(1));
  Ack(1);
  EXPECT_THAT(Sent(), ElementsAre(2));
  Do(LinkDown{});
  Connect(1);
  EXPECT_THAT(Sent(), ElementsAre(2));
}

TEST_F(EventsTest, OneMessageCarriesAtMostAThousandEvents) {
  options().max_launches_in_flight = 2500;
  Start();
  Connect();
  std::vector<agent::v1::Assignment> many;
  for (uint64_t job = 1; job <= 2500; ++job) many.push_back(AssignmentOf(job));
  Assign(many);
  ASSERT_THAT(Effects<SendToBroker>(), SizeIs(3));
  EXPECT_EQ(Effects<SendToBroker>()[0].message.events().events_size(), 1000);
  EXPECT_THAT(Sent(), SizeIs(2500));
}

TEST_F(EventsTest, OneMessageStaysBelowWhatGrpcTakes) {
  options().max_launches_in_flight = 1000;
  Start();
  Connect();
  for (uint64_t job = 1; job <= 900; ++job) Have(job);
  Observed observed;
  for (uint64_t job = 1; job <= 900; ++job) {
    Observation seen = Saw(job, v1::RUN_STATE_FAILED);
    seen.evidence.set_detail(std::string(4096, 'x'));
    observed.outcome.observations.push_back(seen);
  }
  Do(observed);
  EXPECT_THAT(Sent(), SizeIs(900));
  for (const SendToBroker& send : Effects<SendToBroker>()) {
    EXPECT_LT(send.message.ByteSizeLong(), 4u << 20);
  }
}

TEST_F(EventsTest, ARunIsLetGoOnceTheEventWithItsLogsIsAcknowledged) {
  Have(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  Ack(3);
  EXPECT_TRUE(Holds(1));
  ShipLogs(1);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_TRUE(NewEvents()[0].logs_complete());
  EXPECT_EQ(NewEvents()[0].state(), v1::RUN_STATE_SUCCEEDED);
  EXPECT_TRUE(Holds(1));
  Ack(4);
  EXPECT_FALSE(Holds(1));
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(EventsTest, ARunThatTheBackendHasNotForgottenIsForgottenByTheNextProcess) {
  Have(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ShipLogs(1);
  Ack(4);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  EXPECT_THAT(Changes<DeleteRun>(), IsEmpty());
  Start();
  Do(Tick{});
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  EXPECT_THAT(NewEvents(), IsEmpty());
  Forgotten(1);
  EXPECT_THAT(Changes<DeleteRun>(), SizeIs(1));
  Start();
  Do(Tick{});
  EXPECT_THAT(Effects<DoForget>(), IsEmpty());
}

TEST_F(EventsTest, ARunThatTheBackendCouldNotForgetStaysInTheJournalAndIsAskedForAgain) {
  Have(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ShipLogs(1);
  Ack(4);
  Do(agents::Forgotten{Key(1), absl::UnavailableError("no answer")});
  EXPECT_THAT(Changes<DeleteRun>(), IsEmpty());
  After(options().cancel_interval);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  After(options().cancel_interval);
  EXPECT_THAT(Effects<DoForget>(), IsEmpty()) << "it is being asked";
  Forgotten(1);
  EXPECT_THAT(Changes<DeleteRun>(), SizeIs(1));
}

TEST_F(EventsTest, AReleasedRunThatTheBackendHasNotForgottenTellsNothingMore) {
  Have(1);
  Release(1);
  CancelAsked(1);
  Observe(1, v1::RUN_STATE_CANCELED);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  Start();
  Connect();
  Release(1);
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(EventsTest, LogsOfARunThatHasNotEndedAreNeverComplete) {
  Have(1);
  ShipLogs(1);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(EventsTest, LogsAreCompleteOnce) {
  Have(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ShipLogs(1);
  ShipLogs(1);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(EventsTest, ALostAcknowledgementOfTheLogsIsMadeUpForAfterARestart) {
  Have(1);
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ShipLogs(1);
  Start();
  Connect(4);
  EXPECT_FALSE(Holds(1));
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

TEST_F(EventsTest, ARunThatWasToBeLetGoWhenTheAgentDiedIsLetGoAtItsStart) {
  Have(1);
  Cancel(1);  // the backend is busy with it, so that the acknowledgement alone does not delete it
  Observe(1, v1::RUN_STATE_CANCELED);
  ShipLogs(1);
  Ack(4);
  EXPECT_TRUE(Holds(1));
  Start();
  Do(Tick{});
  EXPECT_FALSE(Holds(1));
  EXPECT_THAT(Effects<DoForget>(), SizeIs(1));
}

}  // namespace
}  // namespace muster::agents
