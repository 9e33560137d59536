// Drives a core with a store behind it by hand: each call is one batch, its changes are committed,
// its effects collected, and the core's invariants checked.
#ifndef MUSTER_TESTS_UNIT_CORE_CORE_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CORE_CORE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/core/core.h"
#include "broker/store/memory/memory_store.h"

namespace muster::core {

// ---- specs

v1::JobSpec Spec();
v1::JobSpec SpecOn(const std::string& cluster);
v1::JobSpec SpecWithGpus(const std::string& type, int count, int nodes = 1);

// ---- inventories and hellos

struct NodeOptions {
  uint32_t count = 2;
  uint32_t cpus = 8;
  uint64_t memory_bytes = 64ull << 30;
  std::map<std::string, uint32_t> gpus = {};
};
v1::Pool PoolOf(const std::string& name, const NodeOptions& nodes = {}, bool is_default = true);
agent::v1::AgentHello Hello(const std::string& cluster);

// ---- events

agent::v1::RunEvent Event(uint64_t sequence, const std::string& run_key, v1::RunState state);
// FAILED by the cluster's doing.
agent::v1::RunEvent InfraFailure(uint64_t sequence, const std::string& run_key);
agent::v1::RunEvent LogsComplete(uint64_t sequence, const std::string& run_key, v1::RunState state);

class CoreTest : public ::testing::Test {
 protected:
  CoreTest();

  // Drops the core and starts another from what was committed.
  void Restart();
  void Restart(Options options);
  // Gives clusters all jobs that fit from now on, whether or not they have room for them.
  void LetAllWaitOnClusters();

  // ---- inputs; each is followed by a placement round
  struct Submitted {
    absl::StatusOr<v1::SubmitJobsResponse> result;
  };
  Submitted Submit(std::vector<SubmitItem> items, bool validate_only = false);
  absl::StatusOr<uint64_t> SubmitOne(const v1::JobSpec& spec, const std::string& request_id = "");
  uint64_t MustSubmit(const v1::JobSpec& spec);
  absl::Status Cancel(std::vector<uint64_t> jobs);
  absl::Status Hold(std::vector<uint64_t> jobs);
  absl::Status Release(std::vector<uint64_t> jobs);
  SessionId Connect(const agent::v1::AgentHello& hello);
  SessionId Connect(const std::string& cluster) { return Connect(Hello(cluster)); }
  void Report(SessionId session, std::vector<agent::v1::RunEvent> events);
  void Beat(SessionId session, const agent::v1::AgentHeartbeat& heartbeat = {});
  void Gone(SessionId session);
  void Tick();
  // Says what projects may use, also after a restart.
  void Limit(contract::PlaceLimits limits);
  // Says which shares and quotas projects have, likewise.
  void Share(contract::ProjectShares shares);
  void Do(Input input);

  // ---- what is shown to those who ask
  ClusterViews Views() const;
  v1::StateReason Explain(uint64_t job);  // which is QUEUED
  std::vector<v1::Cluster> Clusters();
  ClustersReply ListClusters(core::ListClusters which);

  // ---- what the last call did
  std::vector<std::string> Assigned(SessionId session) const;  // run keys
  std::vector<agent::v1::Assignment> Assignments(SessionId session) const;
  std::vector<std::string> Cancelled(SessionId session) const;
  std::vector<std::string> Released(SessionId session) const;
  // The runs that the agent was told to hold, or to let go on.
  std::vector<std::string> ToldToHold(SessionId session, bool held = true) const;
  std::optional<uint64_t> Acked(SessionId session) const;
  std::optional<agent::v1::BrokerWelcome> Welcomed(SessionId session) const;
  std::optional<absl::Status> Closed(SessionId session) const;
  template <typename T>
  int CountChanges() const {
    int count = 0;
    for (const Change& change : last_.changes) count += std::holds_alternative<T>(change);
    return count;
  }

  v1::Job Job(uint64_t id) const;
  std::vector<v1::Transition> History(uint64_t id) const;
  std::string Key(uint64_t job, int run = 1) const;

  Options options_;
  contract::PlaceLimits limits_;
  contract::ProjectShares shares_;
  std::string user_ = "alice";  // who submits
  absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  std::map<std::string, std::shared_ptr<const ClusterView>> shown_;
  std::unique_ptr<Core> core_;
  store::MemoryStore store_{"k7m2"};
  Output last_;

 private:
  // Takes over what is shown now.
  void Look();
  template <typename T>
  T TakeReply();

  SessionId last_session_ = 0;
  Ticket last_ticket_ = 0;
};

// The answer as a client gets it.
absl::StatusOr<v1::SubmitJobsResponse> ResultOf(const SubmitReply& reply);
// Returns the reason in the status's ErrorInfo; empty if it has none.
std::string ReasonOf(const absl::Status& status);
// Makes a reason with these words.
v1::StateReason Reason(const std::string& words);

}  // namespace muster::core

#endif  // MUSTER_TESTS_UNIT_CORE_CORE_FIXTURE_H_
