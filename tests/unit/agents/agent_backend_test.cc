// Tests the messages between the agent and the backend of its cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "tests/unit/agents/agent_fixture.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

TEST_F(AgentTest, AnAgentThatCannotWorkSaysWhyAndEnds) {
  cluster_.With([](ClusterState& state) {
    state.probe = absl::FailedPreconditionError("no sbatch; install slurm-client");
  });
  StartAgent();
  EXPECT_THAT(std::string(EventualResult().message()), HasSubstr("install slurm-client"));
}

TEST_F(AgentTest, NoHelloIsSentBeforeTheInventoryIsKnown) {
  cluster_.With([](ClusterState& state) { state.inventory = absl::UnavailableError("slow"); });
  StartBroker();
  StartAgent();
  cluster_.With([](ClusterState& state) { state.inventory = absl::OkStatus(); });
  ASSERT_TRUE(EventuallyConnected());
  EXPECT_EQ(broker_.With([](BrokerState& s) { return s.hellos[0].inventory().identity(); }),
            "fake");
}

TEST_F(AgentTest, AnInventoryThatFailsIsReadAgainAndThatOfAnotherClusterEndsTheAgent) {
  options_.inventory_interval = absl::Milliseconds(20);
  Start();
  ASSERT_TRUE(EventuallyConnected());
  const auto set = [&](absl::Status status) {
    cluster_.With([&](ClusterState& state) {
      state.inventory = std::move(status);
      state.inventories = 0;
    });
  };
  set(absl::FailedPreconditionError("no certificate"));
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.inventories >= 3; }));
  set(contract::Error(absl::StatusCode::kFailedPrecondition, "WRONG_CLUSTER",
                      "this is another cluster"));
  EXPECT_THAT(std::string(EventualResult().message()), HasSubstr("another cluster"));
}

TEST_F(AgentTest, AnInventoryThatTheBackendKnowsToBeOldIsReadAnewAtOnce) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  const auto wake = cluster_.With([](ClusterState& state) {
    state.inventories = 0;
    state.inventory_news = true;
    return state.wake;
  });
  wake();
  EXPECT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.inventories == 1; }));
  EXPECT_FALSE(cluster_.With([](ClusterState& state) { return state.inventory_news; }));
}

TEST_F(AgentTest, TheInventoryIsReadAtOnceWhenTheSchedulerAnswersAgain) {
  broker_.With([](BrokerState& state) { state.heartbeat_ms = 100; });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  cluster_.With([](ClusterState& s) { s.scheduler = absl::UnauthenticatedError("no token"); });
  ASSERT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() && state.heartbeats.back().scheduler_error() == "no token";
  }));
  EXPECT_EQ(cluster_.With([](ClusterState& state) { return state.inventories; }), 1);
  cluster_.With([](ClusterState& s) { s.scheduler = absl::OkStatus(); });
  EXPECT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.inventories == 2; }));
}

TEST_F(AgentTest, HeartbeatsTellThatALookAtTheRunsHangsUntilItEnds) {
  broker_.With([](BrokerState& state) { state.heartbeat_ms = 20; });
  options_.observe_patience = absl::Milliseconds(50);
  options_.inventory_interval = absl::Milliseconds(50);
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  cluster_.With([](ClusterState& state) { state.observes_hang = true; });
  EXPECT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() &&
           state.heartbeats.back().scheduler_error().find("has not ended") != std::string::npos;
  }));
  // An answer of the scheduler is no look at the runs.
  const int inventories = cluster_.With([](ClusterState& state) { return state.inventories; });
  EXPECT_TRUE(cluster_.Eventually(
      [&](ClusterState& state) { return state.inventories > inventories + 3; }));
  const size_t heard = broker_.With([](BrokerState& state) { return state.heartbeats.size(); });
  EXPECT_TRUE(
      broker_.Eventually([&](BrokerState& state) { return state.heartbeats.size() > heard + 3; }));
  EXPECT_NE(
      broker_.With([](BrokerState& state) { return state.heartbeats.back().scheduler_error(); }),
      "");
  cluster_.With([](ClusterState& state) { state.observes_hang = false; });
  EXPECT_TRUE(broker_.Eventually(
      [](BrokerState& state) { return state.heartbeats.back().scheduler_error().empty(); }));
}

TEST_F(AgentTest, AFileServerThatHangsAtTheEndOfARunIsToldAndHoldsUpNoOther) {
  constexpr char kOther[] = "k7m2-2-1";
  broker_.With([](BrokerState& state) { state.heartbeat_ms = 20; });
  cluster_.With(
      [](ClusterState& state) { state.failures_have_logs = state.has_output_host = true; });
  options_.observe_patience = absl::Milliseconds(50);
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  Want(kOther);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  ASSERT_TRUE(EventuallySaw(kOther, v1::RUN_STATE_PENDING));
  cluster_.With([](ClusterState& state) { state.files_hang = true; });
  Cluster(kKey, v1::RUN_STATE_FAILED);
  EXPECT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() &&
           state.heartbeats.back().scheduler_error().starts_with("reading what ended runs");
  }));
  Cluster(kOther, v1::RUN_STATE_SUCCEEDED);
  EXPECT_TRUE(EventuallySaw(kOther, v1::RUN_STATE_SUCCEEDED));
  EXPECT_FALSE(
      broker_.With([](BrokerState& state) { return state.Saw(kKey, v1::RUN_STATE_FAILED); }));
  cluster_.With([](ClusterState& state) { state.files_hang = false; });
  EXPECT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_FAILED));
  EXPECT_TRUE(broker_.Eventually(
      [](BrokerState& state) { return state.heartbeats.back().scheduler_error().empty(); }));
}

TEST_F(AgentTest, HeartbeatsTellWhyTheSchedulerDoesNotAnswer) {
  broker_.With([](BrokerState& state) { state.heartbeat_ms = 100; });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  cluster_.With([](ClusterState& s) { s.scheduler = absl::UnavailableError("timed out"); });
  EXPECT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() && state.heartbeats.back().scheduler_error() == "timed out";
  }));
}

}  // namespace
}  // namespace muster::agents
