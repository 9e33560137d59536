// Makes the smallest whole backend: the contract of agents/core/backend.h for a cluster in memory.
// It passes the tests that every backend passes, and the simulation's agents drive it. An example
// for whoever writes another one.
//
// It remembers only since when it misses runs: a new object comes to the same answers. It has one
// thread, since the cluster has one; a backend for an agent locks what it shares.
#ifndef MUSTER_TESTS_FAKE_BACKEND_H_
#define MUSTER_TESTS_FAKE_BACKEND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "tests/fake/cluster.h"

namespace muster::fake {

// One node has at most this many GPUs, so what asks for more can never run.
inline constexpr int64_t kGpusPerNode = 8;

class FakeBackend : public agents::Backend {
 public:
  // The cluster outlives it.
  explicit FakeBackend(Cluster* cluster) : cluster_(*cluster) {}

  absl::Status Probe() override { return Ask(); }
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;
  // The cluster starts runs without the agent, and has them all: nothing is to be taken over.
  absl::Status Adopt(const std::vector<agents::RunHandle>& /*runs*/) override { return {}; }
  std::vector<agents::LaunchOutcome> Launch(const agents::Assignments& runs) override;
  agents::LookupOutcome Lookup(const agents::RunHandle& run) override;
  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> Hold(const std::vector<agents::RunHandle>& runs, bool held) override;
  agents::FenceOutcome Fence(const agents::RunHandle& run) override;
  agents::RunOutput OpenLogs(const agents::RunHandle& run) override;
  std::vector<absl::Status> Forget(const std::vector<agents::RunHandle>& runs) override;
  agents::Capabilities capabilities() override { return {.output_host = &cluster_.files()}; }
  absl::Duration ObserveInterval() const override { return absl::Seconds(3); }
  // It has no news of its own: the next look tells.
  void SetWaker(std::function<void()> /*wake*/) override {}
  std::map<std::string, uint64_t> SchedulerCalls() const override { return {{"fake", calls_}}; }

 private:
  // Counts a call to the cluster. UNAVAILABLE: it does not answer.
  absl::Status Ask();
  agents::LaunchOutcome LaunchOne(const agent::v1::Assignment& run);
  std::optional<agents::Observation> See(const Cluster::Job& job);
  agents::Observation Describe(const Cluster::Job& job, v1::RunState state) const;
  agents::Observation DescribeEnd(const Cluster::Job& job) const;
  v1::Evidence EvidenceNow(v1::EvidenceSource source, std::string detail) const;

  Cluster& cluster_;
  uint64_t calls_ = 0;
  std::map<std::string, absl::Time> missing_since_;  // by run key
};

}  // namespace muster::fake

#endif  // MUSTER_TESTS_FAKE_BACKEND_H_
