// An agent with a cluster and a broker that do what the test says.
#ifndef MUSTER_TESTS_UNIT_AGENTS_AGENT_FIXTURE_H_
#define MUSTER_TESTS_UNIT_AGENTS_AGENT_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agents/core/agent.h"
#include "tests/unit/agents/fake_backend.h"
#include "tests/unit/agents/fake_broker.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {

inline constexpr char kKey[] = "k7m2-1-1";

inline agent::v1::Assignment AssignmentOf(const std::string& key) {
  agent::v1::Assignment assignment;
  assignment.set_run_key(key);
  return assignment;
}

// A journal whose disk the test can fill and break.
struct Disk {
  absl::Status failure;
  double filled = 0;  // as FilledShare tells it
  int commits = 0;
};
class JournalOnDisk : public Journal {
 public:
  JournalOnDisk(std::unique_ptr<Journal> journal, Shared<Disk>* disk)
      : journal_(std::move(journal)), disk_(*disk) {}
  JournalContent TakeContent() override { return journal_->TakeContent(); }
  absl::Status Commit(const std::vector<JournalChange>& changes) override {
    const absl::Status failure = disk_.With([](Disk& disk) {
      ++disk.commits;
      return disk.failure;
    });
    return failure.ok() ? journal_->Commit(changes) : failure;
  }
  double FilledShare() const override {
    return disk_.With([](Disk& disk) { return disk.filled; });
  }

 private:
  const std::unique_ptr<Journal> journal_;
  Shared<Disk>& disk_;
};

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    options_.core.cluster = "here";
    options_.core.lookup_interval = absl::Milliseconds(20);
    options_.core.cancel_interval = absl::Milliseconds(100);
    options_.broker.target = "unix:" + dir_.path() + "/sock";
    options_.min_redial = absl::Milliseconds(10);
    options_.refused_redial = absl::Milliseconds(20);
    options_.inventory_interval = absl::Hours(1);
    options_.inventory_retry = absl::Milliseconds(20);
    options_.inventory_pause = absl::Milliseconds(20);
    options_.tick = absl::Milliseconds(10);
    options_.logs.min_backoff = absl::Milliseconds(10);
  }
  ~AgentTest() override {
    cluster_.With([](ClusterState& state) {
      state.launches_hang = state.observes_hang = state.files_hang = false;
    });
    Kill();
    EXPECT_FALSE(broker_.With([](BrokerState& state) { return state.gap; }));
  }

  void StartBroker() { server_.emplace(options_.broker.target, &broker_); }
  void StartAgent() {
    auto journal = OpenJournal({.state_dir = dir_.path() + "/agent", .cluster = "here"});
    ASSERT_TRUE(journal.ok()) << journal.status();
    backend_ = std::make_unique<FakeBackend>(&cluster_, dir_.path());
    agent_ = std::make_unique<Agent>(options_, backend_.get(),
                                     std::make_unique<JournalOnDisk>(*std::move(journal), &disk_));
    thread_ = std::thread([this] {
      absl::Status status = agent_->Run();
      result_.With([&](std::optional<absl::Status>& result) { result = status; });
    });
  }
  void Start() {
    StartBroker();
    StartAgent();
  }
  // Ends the agent and returns what Run said.
  absl::Status StopAgent() {
    agent_->Stop();
    thread_.join();
    agent_.reset();
    return *result_.With([](auto& result) { return std::exchange(result, std::nullopt); });
  }
  // Ends it without waiting for what is under way: its results are lost.
  void Kill() {
    if (agent_ == nullptr) return;
    agent_->Stop();
    thread_.join();
    cluster_.With([](ClusterState& state) { state.launches_hang = false; });
    agent_.reset();
    result_.With([](auto& result) { result.reset(); });
  }
  absl::Status EventualResult() {
    EXPECT_TRUE(result_.Eventually([](auto& result) { return result.has_value(); }));
    return result_.With([](auto& result) { return result.value_or(absl::OkStatus()); });
  }

  void Want(const std::string& key, bool may_have_been_launched = false) {
    agent::v1::ConnectResponse message;
    agent::v1::Assignment assignment = AssignmentOf(key);
    assignment.set_may_have_been_launched(may_have_been_launched);
    *message.mutable_assignments()->add_assignments() = assignment;
    assignment.set_may_have_been_launched(true);  // whenever it is sent again
    broker_.With([&](BrokerState& state) { state.wanted[key] = assignment; });
    if (server_) server_->Send(message);
  }
  void Cluster(const std::string& key, v1::RunState run_state) {
    cluster_.With([&](ClusterState& state) {
      state.runs[key] = run_state;
      if (state.wake) state.wake();
    });
  }
  bool EventuallySaw(const std::string& key, v1::RunState run_state) {
    return broker_.Eventually([&](BrokerState& state) { return state.Saw(key, run_state); });
  }
  bool EventuallyConnected(size_t times = 1) {
    return broker_.Eventually([&](BrokerState& s) { return s.connections >= times; });
  }
  bool EventuallyForgotten(const std::string& key) {
    return cluster_.Eventually([&](ClusterState& state) {
      return std::find(state.forgotten.begin(), state.forgotten.end(), key) !=
             state.forgotten.end();
    });
  }
  std::vector<std::string> launched() {
    return cluster_.With([](ClusterState& state) { return state.launched; });
  }

  hosts::TempDir dir_;
  AgentOptions options_;
  Shared<ClusterState> cluster_;
  Shared<BrokerState> broker_;
  Shared<Disk> disk_;
  Shared<std::optional<absl::Status>> result_;
  std::optional<FakeBroker> server_;
  std::unique_ptr<FakeBackend> backend_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_AGENT_FIXTURE_H_
