// A simulated cluster: what truly happens, and how little of it an agent can see.
//
// Calls take time to arrive and to be answered. A launch may be accepted although its answer is
// lost, and even appear some time later; the scheduler may be unreachable; it forgets jobs soon
// after their end; it requeues and suspends. Records that a run left in its directory (that it
// started, how its command ended) outlive the scheduler's memory. The cluster knows nothing of
// agents' restarts: calls under way go on.
#ifndef MUSTER_TESTS_SIM_CLUSTER_H_
#define MUSTER_TESTS_SIM_CLUSTER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "tests/sim/auditor.h"
#include "tests/sim/world.h"

namespace muster::sim {

// A launch that was accepted shows within this time; the agents' grace period is longer.
inline constexpr absl::Duration kLongestFlight = absl::Seconds(20);

class SimCluster {
 public:
  // The kind of scheduler that it is.
  struct Temper {
    bool is_slurm = true;  // else plain machines: a launch is seldom unclear, nothing is requeued
    bool keeps_history = true;                  // knows how a forgotten job ended (sacct)
    absl::Duration memory = absl::Seconds(10);  // how long an ended job stays in the queue
    int slots = 4;                              // commands at the same time
  };

  SimCluster(World* world, Auditor* auditor, std::string name, Temper temper)
      : world_(*world), auditor_(*auditor), name_(std::move(name)), temper_(temper) {}

  const std::string& name() const { return name_; }
  const Temper& temper() const { return temper_; }
  v1::Inventory Inventory() const;

  // The calls of agents::Backend, but the answer comes later.
  void Launch(const agent::v1::Assignment& assignment,
              std::function<void(agents::LaunchOutcome)> answer);
  void Lookup(const agents::RunHandle& run, std::function<void(agents::LookupOutcome)> answer);
  void Observe(std::vector<agents::RunHandle> runs,
               std::function<void(agents::ObserveOutcome)> answer);
  void Cancel(const agents::RunHandle& run, std::function<void(absl::Status)> answer);
  // A waiting run does not start while it is held.
  void SetHeld(const agents::RunHandle& run, bool held, std::function<void(absl::Status)> answer);
  void Forget(const std::string& run_key);

  // One random misfortune: unreachable for a while, a requeue, a suspension, a foreign scancel, a
  // node that dies.
  void Misfortune();
  // Runs that have not ended.
  size_t live() const;

 private:
  enum class Phase { kQueued, kStarting, kRunning, kSuspended, kFinishing, kEnded };

  struct Entry {
    uint64_t id = 0;
    std::string run_key;
    Phase phase = Phase::kQueued;
    int restart = 0;          // how often the scheduler has requeued it
    int phase_number = 0;     // makes earlier plans for it void
    absl::Duration duration;  // of the command; infinite: until it is canceled
    int exit_code = 0;
    int signal = 0;
    bool is_held = false;
    bool is_preempted = false;       // the command is stopped for another job
    bool is_clusters_fault = false;  // that the command fails
    bool vanishes = false;           // its node dies and leaves no record
    bool has_started = false;        // its directory says so
    bool in_queue = true;            // the scheduler knows it
    bool has_record = false;         // of the command's end
    // Should it end by a cancel, that is all that can be seen.
    bool end_looks_like_failure = false;
    TrueEnd end;
    absl::Time start_time;
    absl::Time end_time;
    absl::Time gone_since = absl::InfiniteFuture();  // first look that found nothing
  };

  bool is_reachable() const { return world_.loop.now() >= unreachable_until_; }
  absl::Duration CallTime() {
    return world_.random.Skewed(absl::Milliseconds(5), absl::Seconds(2));
  }
  void Accept(const agent::v1::Assignment& assignment);
  void StartWhatFits();
  // Does `action` unless the entry has moved on meanwhile.
  void Plan(Entry* entry, absl::Duration delay, std::function<void(Entry*)> action);
  void Enter(Entry* entry, Phase phase);
  void Begin(Entry* entry);
  void Run(Entry* entry);
  void End(Entry* entry, TrueEnd end);
  void Kill(Entry* entry);
  std::optional<agents::Observation> See(Entry* entry);
  agents::Observation Describe(const Entry& entry, v1::RunState state) const;
  agents::Observation DescribeEnd(const Entry& entry) const;
  // A canceled run of which nothing tells that it was canceled.
  agents::Observation DescribeCutOff(const Entry& entry) const;
  v1::Evidence EvidenceNow(v1::EvidenceSource source, std::string detail) const;

  World& world_;
  Auditor& auditor_;
  const std::string name_;
  const Temper temper_;
  uint64_t next_id_ = 1;
  std::map<std::string, Entry> entries_;  // by run key; the latest of each
  absl::Time unreachable_until_ = absl::InfinitePast();
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_CLUSTER_H_
