// Tests the agent's count of leases, from the moment at which it sent the heartbeat that was
// answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

class AgentLeasesTest : public CoreHarness, public testing::Test {
 protected:
  AgentLeasesTest() {
    options().fence_delay = absl::Seconds(21);
    Start();
  }

  // Returns the numbers of the heartbeats that the last input sent.
  std::vector<uint64_t> Beats() const {
    std::vector<uint64_t> numbers;
    for (const SendToBroker& send : Effects<SendToBroker>()) {
      if (send.message.has_heartbeat()) numbers.push_back(send.message.heartbeat().number());
    }
    return numbers;
  }
  // Returns the ends of the leases that the answer to this heartbeat gives.
  std::vector<absl::Time> Renew(uint64_t number, int64_t seconds = 60) {
    agent::v1::ConnectResponse message;
    message.mutable_lease_renewal()->set_heartbeat_number(number);
    message.mutable_lease_renewal()->mutable_duration()->set_seconds(seconds);
    Do(BrokerSaid{message});
    std::vector<absl::Time> ends;
    for (const DoRenewLeases& renew : Effects<DoRenewLeases>()) ends.push_back(renew.end);
    return ends;
  }
  void ConnectAndAck() {
    Connect();
    Ack(0);
  }
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(AgentLeasesTest, TheHelloTellsTheFenceDelayAndAHeartbeatFollowsTheWelcome) {
  Do(LinkUp{});
  ASSERT_EQ(Effects<SendToBroker>().size(), 1u);
  EXPECT_EQ(Effects<SendToBroker>()[0].message.hello().fence_delay().seconds(), 21);
  Do(BrokerSaid{WelcomeMessage()});
  EXPECT_THAT(Beats(), ElementsAre(1));
}

TEST_F(AgentLeasesTest, AClusterThatFencesNothingTellsNothing) {
  options().fence_delay = absl::ZeroDuration();
  Start();
  Do(LinkUp{});
  EXPECT_FALSE(Effects<SendToBroker>()[0].message.hello().has_fence_delay());
  Do(BrokerSaid{WelcomeMessage()});
  EXPECT_THAT(Renew(1), IsEmpty());
}

TEST_F(AgentLeasesTest, LeasesEndByTheTimeAtWhichTheAnsweredHeartbeatWasSent) {
  ConnectAndAck();
  const absl::Time sent = now();
  After(absl::Seconds(4));
  EXPECT_THAT(Renew(1), ElementsAre(sent + absl::Seconds(60)));
}

TEST_F(AgentLeasesTest, EachHeartbeatHasATimeOfItsOwn) {
  ConnectAndAck();
  After(absl::Seconds(5));
  EXPECT_THAT(Beats(), ElementsAre(2));
  const absl::Time second = now();
  Ack(0);
  After(absl::Seconds(5));
  EXPECT_THAT(Beats(), ElementsAre(3));
  EXPECT_THAT(Renew(2), ElementsAre(second + absl::Seconds(60)));
}

TEST_F(AgentLeasesTest, AHeartbeatIsAnsweredOnceAndAnEarlierOneNotAfterALaterOne) {
  ConnectAndAck();
  After(absl::Seconds(5));
  EXPECT_THAT(Renew(2), testing::SizeIs(1));
  EXPECT_THAT(Renew(2), IsEmpty());
  EXPECT_THAT(Renew(1), IsEmpty());
  EXPECT_THAT(Renew(77), IsEmpty());
}

TEST_F(AgentLeasesTest, AnAnswerThatComesAfterItsLeaseIsOverRenewsNothing) {
  ConnectAndAck();
  After(absl::Seconds(3));
  EXPECT_THAT(Renew(1, /*seconds=*/3), IsEmpty());
}

TEST_F(AgentLeasesTest, ALeaseIsNeverLongerThanADay) {
  ConnectAndAck();
  EXPECT_THAT(Renew(1, /*seconds=*/1'000'000), ElementsAre(now() + absl::Hours(24)));
}

TEST_F(AgentLeasesTest, AnswersOfAnEarlierConnectionDoNotCount) {
  ConnectAndAck();
  After(absl::Seconds(5));
  Do(LinkDown{});
  After(absl::Seconds(1));
  ConnectAndAck();
  EXPECT_THAT(Renew(2), IsEmpty());
  EXPECT_THAT(Renew(1), ElementsAre(now() + absl::Seconds(60)));
}

TEST_F(AgentLeasesTest, NothingIsRenewedWhileARunThatTheBrokerGaveUpMayBegin) {
  ConnectAndAck();
  agent::v1::Assignment assignment = AssignmentOf(1);
  assignment.mutable_spec()->set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
  Assign({assignment});
  Launched(1);
  Release(1);
  EXPECT_THAT(Renew(1), IsEmpty());
  Observe(1, v1::RUN_STATE_CANCELED);
  After(absl::Seconds(5));
  EXPECT_THAT(Renew(2), testing::SizeIs(1));
}

}  // namespace
}  // namespace muster::agents
