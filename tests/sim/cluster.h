// Makes the way from an agent to a cluster in memory (tests/fake), through the cluster's backend.
//
// Calls take time to arrive and to be answered. A launch may arrive although its answer is lost,
// and even some time later; the scheduler may be unreachable. The auditor hears all that happens on
// the cluster. The cluster knows nothing of agents' restarts: calls under way go on.
#ifndef MUSTER_TESTS_SIM_CLUSTER_H_
#define MUSTER_TESTS_SIM_CLUSTER_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "tests/fake/backend.h"
#include "tests/fake/cluster.h"
#include "tests/sim/auditor.h"
#include "tests/sim/leases.h"
#include "tests/sim/world.h"

namespace muster::sim {

// A launch that was accepted shows within this, which is less than the agents' grace period.
inline constexpr absl::Duration kLongestFlight = absl::Seconds(20);

class SimCluster : private fake::Owner {
 public:
  // The kind of scheduler that it is.
  struct Temper {
    bool is_slurm = true;  // else plain machines: a launch is seldom unclear, nothing is requeued
    fake::Cluster::Options cluster;
  };

  SimCluster(World* world, Auditor* auditor, std::string name, Temper temper);

  const std::string& name() const { return name_; }
  const Temper& temper() const { return temper_; }
  v1::Inventory Inventory() const { return inventory_; }

  // An agent starts, with a backend of its own.
  void Restart(const std::vector<agents::RunHandle>& runs);
  // These are the calls of agents::Backend, but the answer comes later.
  void Launch(const agent::v1::Assignment& assignment,
              std::function<void(agents::LaunchOutcome)> answer);
  void Lookup(const agents::RunHandle& run, std::function<void(agents::LookupOutcome)> answer);
  void Fence(const agents::RunHandle& run, std::function<void(agents::FenceOutcome)> answer);
  void Observe(std::vector<agents::RunHandle> runs,
               std::function<void(agents::ObserveOutcome)> answer);
  void Cancel(const agents::RunHandle& run, std::function<void(absl::Status)> answer);
  // A waiting run does not start while it is held.
  void SetHeld(const agents::RunHandle& run, bool held, std::function<void(absl::Status)> answer);
  void Forget(const agents::RunHandle& run);
  void RenewLeases(absl::Duration remaining) { leases_.Renew(remaining, CallTime()); }

  // Causes a random misfortune: unreachable for a while, requeue, suspension, foreign scancel.
  void Misfortune();
  // Runs that have not ended.
  size_t live() const;

 private:
  using Phase = fake::Cluster::Phase;

  fake::Program ProgramOf(const agent::v1::Assignment& run, uint32_t rank) override;
  absl::Duration StartTime() override;
  absl::Duration EndTime() override;
  absl::Duration FinishTime() override;
  bool MayStart(const std::string& run_key) override { return leases_.MayStart(run_key); }
  // The node looks at the lease of a run that has started, again and again.
  void LookAtLease(const std::string& run_key, int restart);
  void OnSubmitted(const std::string& run_key) override;
  void OnStarted(const std::string& run_key, int restart) override;
  void OnEnded(const std::string& run_key, const TrueEnd& end) override;
  void OnLeftNoTrace(const std::string& run_key) override { auditor_.LeftNoTrace(run_key); }

  absl::Duration CallTime() {
    return world_.random.Skewed(absl::Milliseconds(5), absl::Seconds(2));
  }
  bool IsUnanswered() { return cluster_.is_away() || world_.Strikes(0.1); }
  // Refuses what the job's labels say that the cluster refuses. Returns whether it does.
  bool Refuse(const agent::v1::Assignment& assignment, agents::LaunchOutcome* outcome);
  // An observation as the agent gets it: some cancels look like failures, and mutations lie.
  void Distort(agents::Observation* seen);
  void Note(const std::string& run_key, std::string_view what) {
    world_.history.Note(world_.loop, "{}: {} {}", name_, run_key, what);
  }

  World& world_;
  Auditor& auditor_;
  const std::string name_;
  const Temper temper_;
  SimLeases leases_;
  fake::Cluster cluster_;
  std::unique_ptr<fake::FakeBackend> backend_;
  v1::Inventory inventory_;
  // Canceled runs of which nothing tells that they were canceled, by run key.
  std::set<std::string> cut_off_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_CLUSTER_H_
