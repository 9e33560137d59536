#include <gmock/gmock.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SessionTest : public testing::Test, protected CoreHarness {};

TEST_F(SessionTest, TheHelloSaysWhoTheAgentIsAndWhatItHolds) {
  Connect();
  Have(1);
  Have(2);
  Observe(2, v1::RUN_STATE_SUCCEEDED);
  LinkUp up;
  up.inventory.set_identity("machine-id");
  Do(up);
  ASSERT_THAT(Effects<SendToBroker>(), SizeIs(1));
  const agent::v1::AgentHello hello = Effects<SendToBroker>()[0].message.hello();
  EXPECT_EQ(hello.protocol_version(), 1);
  EXPECT_EQ(hello.cluster(), "here");
  EXPECT_EQ(hello.journal_id(), "journal-1");
  EXPECT_EQ(hello.instance(), "k7m2");
  EXPECT_EQ(hello.broker_epoch(), 1);
  EXPECT_EQ(hello.max_active_runs(), 1000);
  EXPECT_EQ(hello.inventory().identity(), "machine-id");
  ASSERT_THAT(hello.runs(), SizeIs(2));
  EXPECT_EQ(hello.runs(1).state(), v1::RUN_STATE_SUCCEEDED);
}

TEST_F(SessionTest, NothingButTheHelloIsSentBeforeTheWelcome) {
  Connect();
  Assign(1);
  Do(LinkDown{});
  Launched(1);
  EXPECT_THAT(Effects<SendToBroker>(), IsEmpty());
  Do(LinkUp{});
  After(absl::Seconds(6));
  EXPECT_THAT(Effects<SendToBroker>(), IsEmpty());
  Do(BrokerSaid{WelcomeMessage(1)});
  EXPECT_THAT(Sent(), ElementsAre(2));
}

TEST_F(SessionTest, AnEmptyJournalTakesTheInstanceOfItsFirstBroker) {
  Connect();
  EXPECT_EQ(journal().meta.instance, "k7m2");
  EXPECT_EQ(journal().meta.broker_epoch, 1);
}

TEST_F(SessionTest, AnotherInstanceStopsTheAgent) {
  Connect();
  Start();
  Do(LinkUp{});
  Do(BrokerSaid{WelcomeMessage(0, "zzzz")});
  ASSERT_THAT(Effects<Stop>(), SizeIs(1));
  EXPECT_EQ(Effects<Stop>()[0].status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(journal().meta.instance, "k7m2");
  Assign(1);
  EXPECT_THAT(Changes<PutRun>(), IsEmpty());
}

TEST_F(SessionTest, ALowerEpochStopsTheAgentAndAHigherOneIsKept) {
  Do(LinkUp{});
  Do(BrokerSaid{WelcomeMessage(0, "k7m2", 5)});
  EXPECT_EQ(journal().meta.broker_epoch, 5);
  Do(LinkUp{});
  Do(BrokerSaid{WelcomeMessage(0, "k7m2", 4)});
  EXPECT_THAT(Effects<Stop>(), SizeIs(1));
  EXPECT_EQ(journal().meta.broker_epoch, 5);
}

TEST_F(SessionTest, ABrokerThatForgotAcknowledgedEventsStopsTheAgent) {
  Connect();
  Have(1);
  Ack(2);
  Do(LinkUp{});
  Do(BrokerSaid{WelcomeMessage(1)});
  EXPECT_THAT(Effects<Stop>(), SizeIs(1));
}

TEST_F(SessionTest, ABrokerThatKnowsLaterEventsThanTheJournalStopsTheAgent) {
  Do(LinkUp{});
  Do(BrokerSaid{WelcomeMessage(7)});
  ASSERT_THAT(Effects<Stop>(), SizeIs(1));
  EXPECT_EQ(Effects<Stop>()[0].status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(SessionTest, HeartbeatsFollowTheIntervalOfTheWelcome) {
  Connect();
  After(absl::Seconds(4));
  EXPECT_THAT(Effects<SendToBroker>(), IsEmpty());
  After(absl::Seconds(1));
  ASSERT_THAT(Effects<SendToBroker>(), SizeIs(1));
  EXPECT_TRUE(Effects<SendToBroker>()[0].message.has_heartbeat());
}

TEST_F(SessionTest, TheInventoryIsInAHeartbeatOnlyWhenItChanged) {
  InventoryRead read;
  read.inventory.set_scheduler_version("1");
  Connect();
  Do(read);
  After(absl::Seconds(5));
  EXPECT_TRUE(Effects<SendToBroker>()[0].message.heartbeat().has_inventory());
  Ack(0);
  read.inventory.mutable_observed_at()->set_seconds(9);
  Do(read);
  After(absl::Seconds(5));
  EXPECT_FALSE(Effects<SendToBroker>()[0].message.heartbeat().has_inventory());
}

TEST_F(SessionTest, HeartbeatsSayWhenTheSchedulerAnsweredAndWhyItDoesNot) {
  Connect();
  Observed silent;
  silent.outcome.scheduler = absl::UnavailableError("slurmctld: timed out");
  silent.scheduler_calls = {{"squeue", 3}};
  const absl::Time answered = now();
  Do(Observed{});
  After(absl::Seconds(1));
  Do(silent);
  After(absl::Seconds(5));
  const agent::v1::AgentHeartbeat heartbeat = Effects<SendToBroker>()[0].message.heartbeat();
  EXPECT_EQ(heartbeat.scheduler_observed_at().seconds(), absl::ToUnixSeconds(answered));
  EXPECT_EQ(heartbeat.scheduler_error(), "slurmctld: timed out");
  EXPECT_EQ(heartbeat.scheduler_calls().at("squeue"), 3);
}

TEST_F(SessionTest, AJournalThatIsNearlyFullTakesNoNewRunButWhatEmptiesIt) {
  Connect();
  Have(1);
  Do(JournalFilled{0.75});
  EXPECT_TRUE(core().holds_back_runs());
  Assign({AssignmentOf(1), AssignmentOf(2)});
  EXPECT_FALSE(Holds(2));
  EXPECT_THAT(Effects<Redial>(), IsEmpty());
  Observe(1, v1::RUN_STATE_SUCCEEDED);
  ShipLogs(1);
  Ack(4);
  EXPECT_FALSE(Holds(1));
  After(absl::Seconds(5));
  EXPECT_THAT(Effects<SendToBroker>().back().message.heartbeat().scheduler_error(),
              HasSubstr("nearly full"));
}

TEST_F(SessionTest, RunsThatWereHeldBackAreAskedForAgainOnceThereIsRoom) {
  Connect();
  Do(JournalFilled{0.75});
  Assign(1);
  Do(JournalFilled{0.5});
  EXPECT_TRUE(core().holds_back_runs());
  EXPECT_THAT(Effects<Redial>(), IsEmpty());
  Do(JournalFilled{0.49});
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
  Connect();
  Assign(1);
  EXPECT_TRUE(Holds(1));
}

TEST_F(SessionTest, AJournalThatHasRoomAgainAndMissedNothingKeepsTheConnection) {
  Connect();
  Do(JournalFilled{0.75});
  Do(JournalFilled{0.1});
  EXPECT_THAT(Effects<Redial>(), IsEmpty());
}

TEST_F(SessionTest, StampsFollowTheTimeOfDayAfterItWasSetAndWaitsDoNot) {
  Connect();
  SetWallClock(-absl::Hours(5));
  Do(Observed{});
  Assign(1);
  EXPECT_EQ(NewEvents().back().evidence().observed_at().seconds(), absl::ToUnixSeconds(wall()));
  EXPECT_EQ(journal().runs[0].launch_time, wall());
  After(absl::Seconds(5));
  ASSERT_THAT(Effects<SendToBroker>(), SizeIs(1));
  EXPECT_EQ(Effects<SendToBroker>()[0].message.heartbeat().scheduler_observed_at().seconds(),
            absl::ToUnixSeconds(wall() - absl::Seconds(5)));
  SetWallClock(absl::Hours(10));
  After(absl::Seconds(5));
  EXPECT_THAT(Effects<Redial>(), IsEmpty());
}

TEST_F(SessionTest, ASilentBrokerIsGivenUpAfterThreeIntervals) {
  Connect();
  After(absl::Seconds(14));
  EXPECT_THAT(Effects<Redial>(), IsEmpty());
  After(absl::Seconds(1));
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
  After(absl::Seconds(60));
  EXPECT_THAT(Effects<SendToBroker>(), IsEmpty());
}

TEST_F(SessionTest, AnAcknowledgementKeepsTheConnection) {
  Connect();
  for (int i = 0; i < 10; ++i) {
    After(absl::Seconds(10));
    EXPECT_THAT(Effects<Redial>(), IsEmpty());
    Ack(0);
  }
}

TEST_F(SessionTest, ABrokerThatDoesNotWelcomeIsGivenUp) {
  Do(LinkUp{});
  After(absl::Seconds(30));
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
}

TEST_F(SessionTest, ABrokerThatGoesAwayIsDialedAgainWhenItSays) {
  Connect();
  agent::v1::ConnectResponse message;
  message.mutable_reconnect()->mutable_after()->set_seconds(7);
  Do(BrokerSaid{message});
  ASSERT_THAT(Effects<Redial>(), SizeIs(1));
  EXPECT_EQ(Effects<Redial>()[0].after, absl::Seconds(7));
}

TEST_F(SessionTest, MessagesOutOfPlaceEndTheConnection) {
  Do(LinkUp{});
  Assign(1);
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
  EXPECT_FALSE(Holds(1));
  Connect();
  Do(BrokerSaid{WelcomeMessage()});
  EXPECT_THAT(Effects<Redial>(), SizeIs(1));
}

TEST_F(SessionTest, TheLastWordsOfAGivenUpConnectionAreIgnored) {
  Connect();
  Do(LinkDown{});
  Assign(1);
  EXPECT_FALSE(Holds(1));
}

}  // namespace
}  // namespace muster::agents
