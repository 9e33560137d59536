#include "agents/core/agent.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <thread>

#include "contract/errors.h"
#include "tests/unit/agents/agent_fixture.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(AgentTest, ARunGoesFromItsAssignmentToItsRelease) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  std::ofstream(dir_.path() + "/" + kKey) << "its output";
  Cluster(kKey, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_RUNNING));
  Cluster(kKey, v1::RUN_STATE_SUCCEEDED);
  ASSERT_TRUE(EventuallyForgotten(kKey));
  EXPECT_THAT(launched(), ElementsAre(kKey));
  broker_.With([](BrokerState& state) {
    EXPECT_EQ(state.logs[kKey], "its output");
    EXPECT_TRUE(state.complete[kKey]);
    EXPECT_TRUE(state.LogsComplete(kKey));
    EXPECT_EQ(state.Last(kKey)->state(), v1::RUN_STATE_SUCCEEDED);
  });
  EXPECT_TRUE(StopAgent().ok());
}

TEST_F(AgentTest, WhatTheAgentStampsHasTheTimeOfDayThatIsSetNow) {
  const auto clock = std::make_shared<Shared<absl::Time>>();
  options_.wall_clock = [clock] { return clock->With([](absl::Time& time) { return time; }); };
  clock->With([](absl::Time& time) { time = absl::FromUnixSeconds(1'000); });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  clock->With([](absl::Time& time) { time = absl::FromUnixSeconds(2'000'000'000); });
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_EQ(broker_.With([](BrokerState& state) {
    return state.events[0].evidence().observed_at().seconds();
  }),
            2'000'000'000);
}

// The first is under way with the others behind it: as many as the backend takes go together.
TEST_F(AgentTest, LaunchesThatWaitAtTheSameTimeGoToTheBackendTogether) {
  options_.launch_parallelism = 1;
  cluster_.With([](ClusterState& state) {
    state.max_launch_batch = 4;
    state.launches_hang = true;
  });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want("k7m2-1-1");
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return !state.launched.empty(); }));
  for (int job = 2; job <= 6; ++job) Want(fmt::format("k7m2-{}-1", job));
  ASSERT_TRUE(EventuallySaw("k7m2-6-1", v1::RUN_STATE_LAUNCHING)) << "its intent is written down";
  cluster_.With([](ClusterState& state) { state.launches_hang = false; });
  for (int job = 1; job <= 6; ++job)
    ASSERT_TRUE(EventuallySaw(fmt::format("k7m2-{}-1", job), v1::RUN_STATE_PENDING));
  EXPECT_THAT(launched(),
              ElementsAre("k7m2-1-1", "k7m2-2-1", "k7m2-3-1", "k7m2-4-1", "k7m2-5-1", "k7m2-6-1"));
  EXPECT_THAT(cluster_.With([](ClusterState& state) { return state.batches; }),
              ElementsAre(1u, 4u, 1u));
}

TEST_F(AgentTest, ABackendThatLaunchesOneByOneGetsNoMoreThanItsThreadsNeed) {
  options_.launch_parallelism = 1;
  cluster_.With([](ClusterState& state) { state.launches_hang = true; });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  for (int job = 1; job <= 6; ++job) Want(fmt::format("k7m2-{}-1", job));
  ASSERT_TRUE(EventuallySaw("k7m2-4-1", v1::RUN_STATE_LAUNCHING));
  EXPECT_FALSE(broker_.With(
      [](BrokerState& state) { return state.Saw("k7m2-5-1", v1::RUN_STATE_LAUNCHING); }));
  cluster_.With([](ClusterState& state) { state.launches_hang = false; });
  ASSERT_TRUE(EventuallySaw("k7m2-6-1", v1::RUN_STATE_PENDING));
  EXPECT_THAT(cluster_.With([](ClusterState& state) { return state.batches; }),
              ElementsAre(1u, 1u, 1u, 1u, 1u, 1u));
}

TEST_F(AgentTest, ABrokerThatComesLaterIsFound) {
  StartAgent();
  StartBroker();
  EXPECT_TRUE(EventuallyConnected());
}

TEST_F(AgentTest, ABrokerThatComesBackGetsWhatHappenedMeanwhile) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  server_.reset();
  Cluster(kKey, v1::RUN_STATE_SUCCEEDED);
  StartBroker();
  ASSERT_TRUE(EventuallyForgotten(kKey));
  EXPECT_THAT(launched(), ElementsAre(kKey));
}

TEST_F(AgentTest, ARefusalThatMayHealIsTriedAgain) {
  broker_.With([](BrokerState& state) {
    state.refusal =
        contract::Error(absl::StatusCode::kAlreadyExists, "NAME_CONNECTED", "the name is taken");
  });
  Start();
  ASSERT_TRUE(broker_.Eventually([](BrokerState& s) { return s.hellos.size() >= 2; }));
  broker_.With([](BrokerState& state) { state.refusal = absl::OkStatus(); });
  Want(kKey);
  EXPECT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
}

TEST_F(AgentTest, ARefusalThatNeverHealsEndsTheAgent) {
  broker_.With([](BrokerState& state) {
    state.refusal = contract::Error(absl::StatusCode::kFailedPrecondition, "WRONG_INSTANCE",
                                    "the agent belongs to another broker");
  });
  Start();
  EXPECT_THAT(std::string(EventualResult().message()), HasSubstr("another broker"));
}

TEST_F(AgentTest, ABrokerOfAnotherInstanceEndsTheAgent) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  server_.reset();
  broker_.With([](BrokerState& state) { state.instance = "zzzz"; });
  StartBroker();
  EXPECT_EQ(EventualResult().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AgentTest, ASilentBrokerIsDialedAgain) {
  broker_.With([](BrokerState& state) {
    state.silent = true;
    state.heartbeat_ms = 100;
  });
  Start();
  EXPECT_TRUE(EventuallyConnected(3));
}

TEST_F(AgentTest, ACancelReachesTheClusterWhileALaunchHangs) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  cluster_.With([](ClusterState& state) { state.launches_hang = true; });
  for (int job = 2; job <= 9; ++job) Want("k7m2-" + std::to_string(job) + "-1");
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.launched.size() == 5; }));
  agent::v1::ConnectResponse message;
  message.mutable_cancellations()->add_run_keys(kKey);
  server_->Send(message);
  EXPECT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_CANCELED));
}

TEST_F(AgentTest, AnAgentThatIsToldToEndWaitsForItsLaunch) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  cluster_.With([](ClusterState& state) { state.launches_hang = true; });
  Want(kKey);
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.launched.size() == 1; }));
  agent_->Stop();
  cluster_.With([](ClusterState& state) { state.launches_hang = false; });
  EXPECT_TRUE(StopAgent().ok());
  StartAgent();
  ASSERT_TRUE(EventuallyConnected(2));
  cluster_.With([](ClusterState& state) {
    EXPECT_THAT(state.adopted, ElementsAre(kKey));
    EXPECT_THAT(state.looked_up, IsEmpty());
  });
  broker_.With([](BrokerState& state) {
    EXPECT_EQ(state.hellos[1].runs(0).state(), v1::RUN_STATE_PENDING);
  });
}

// ---- the agent dies and comes back

class AgentDeathTest : public AgentTest {
 protected:
  AgentDeathTest() { options_.drain_timeout = absl::ZeroDuration(); }
};

TEST_F(AgentDeathTest, DuringALaunchThatWorkedTheRunIsAdopted) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  cluster_.With([](ClusterState& state) { state.launches_hang = true; });
  Want(kKey);
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.launched.size() == 1; }));
  Kill();
  StartAgent();
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_TRUE(
      broker_.With([](BrokerState& s) { return s.Saw(kKey, v1::RUN_STATE_LAUNCH_UNKNOWN); }));
  EXPECT_THAT(launched(), ElementsAre(kKey));
}

TEST_F(AgentDeathTest, DuringALaunchThatDidNotWorkTheRunIsLaunchedAgain) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  cluster_.With([](ClusterState& state) {
    state.launches_hang = true;
    state.launch = LaunchOutcome::Kind::kUnclear;
  });
  Want(kKey);
  ASSERT_TRUE(cluster_.Eventually([](ClusterState& state) { return state.launched.size() == 1; }));
  Kill();
  cluster_.With([](ClusterState& state) { state.launch = LaunchOutcome::Kind::kLaunched; });
  StartAgent();
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_THAT(launched(), ElementsAre(kKey, kKey));
}

TEST_F(AgentDeathTest, BetweenTheEndAndItsAcknowledgementNothingIsLost) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  broker_.With([](BrokerState& state) { state.silent = true; });
  Cluster(kKey, v1::RUN_STATE_SUCCEEDED);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_SUCCEEDED));
  Kill();
  broker_.With([](BrokerState& state) { state.silent = false; });
  StartAgent();
  EXPECT_TRUE(EventuallyForgotten(kKey));
}

TEST_F(AgentDeathTest, WithItsJournalLostTheRunIsLookedUpAndAdopted) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  Kill();
  std::filesystem::remove_all(dir_.path() + "/agent");
  broker_.With([](BrokerState& state) { state.events.clear(); });  // another journal begins at 1
  StartAgent();
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_THAT(launched(), ElementsAre(kKey));
}

TEST_F(AgentDeathTest, InTheMiddleOfALogTheRestFollows) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  Want(kKey);
  ASSERT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  std::ofstream log(dir_.path() + "/" + kKey);
  log << "first " << std::flush;
  Cluster(kKey, v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(broker_.Eventually([](BrokerState& state) { return state.logs[kKey] == "first "; }));
  Kill();
  log << "second" << std::flush;
  Cluster(kKey, v1::RUN_STATE_SUCCEEDED);
  StartAgent();
  ASSERT_TRUE(EventuallyForgotten(kKey));
  EXPECT_EQ(broker_.With([](BrokerState& state) { return state.logs[kKey]; }), "first second");
}

// ---- the journal's disk

TEST_F(AgentTest, AFullDiskStopsNewWorkUntilThereIsRoomAndTheBrokerIsTold) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  disk_.With([](Disk& disk) { disk.failure = absl::ResourceExhaustedError("journal: disk full"); });
  Want(kKey);
  ASSERT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() &&
           state.heartbeats.back().scheduler_error() == "journal: disk full";
  }));
  EXPECT_THAT(launched(), IsEmpty());
  disk_.With([](Disk& disk) { disk.failure = absl::OkStatus(); });
  EXPECT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_THAT(launched(), ElementsAre(kKey));
}

TEST_F(AgentTest, AJournalThatIsNearlyFullTakesNoRunsUntilThereIsRoomAndTheBrokerIsTold) {
  broker_.With([](BrokerState& state) { state.heartbeat_ms = 100; });
  Start();
  ASSERT_TRUE(EventuallyConnected());
  disk_.With([](Disk& disk) { disk.filled = 0.8; });
  ASSERT_TRUE(broker_.Eventually([](BrokerState& state) {
    return !state.heartbeats.empty() &&
           state.heartbeats.back().scheduler_error().find("nearly full") != std::string::npos;
  }));
  Want(kKey);
  const size_t said = broker_.With([](BrokerState& state) { return state.heartbeats.size(); });
  ASSERT_TRUE(
      broker_.Eventually([&](BrokerState& state) { return state.heartbeats.size() > said + 1; }));
  EXPECT_THAT(launched(), IsEmpty());
  disk_.With([](Disk& disk) { disk.filled = 0.2; });
  Cluster("k7m2-9-1", v1::RUN_STATE_PENDING);  // wakes the agent
  EXPECT_TRUE(EventuallySaw(kKey, v1::RUN_STATE_PENDING));
  EXPECT_THAT(launched(), ElementsAre(kKey));
}

TEST_F(AgentTest, ABrokenDiskEndsTheAgentBeforeItLaunches) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  disk_.With([](Disk& disk) { disk.failure = absl::InternalError("I/O error"); });
  Want(kKey);
  EXPECT_EQ(EventualResult().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(launched(), IsEmpty());
}

TEST_F(AgentTest, AQuestionIsAnsweredOverTheLinkThatAskedAndNotJournaled) {
  Start();
  ASSERT_TRUE(EventuallyConnected());
  const auto ask = [&](uint64_t id) {
    agent::v1::ConnectResponse message;
    message.mutable_question()->set_id(id);
    message.mutable_question()->mutable_plan()->set_user("ada");
    message.mutable_question()->mutable_plan()->mutable_spec()->set_name("train");
    server_->Send(message);
    return broker_.Eventually([&](BrokerState& state) { return state.answers.size() == id; });
  };
  ASSERT_TRUE(ask(1)) << "the welcome has been handled before it";
  const int commits = disk_.With([](Disk& disk) { return disk.commits; });
  ASSERT_TRUE(ask(2));
  broker_.With([](BrokerState& state) {
    EXPECT_EQ(state.answers[1].plan().submission(), "ada runs train");
  });
  EXPECT_EQ(disk_.With([](Disk& disk) { return disk.commits; }), commits);
}

}  // namespace
}  // namespace muster::agents
