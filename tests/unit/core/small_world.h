// A core with a few clusters and jobs, driven through virtual time, for tests that look at many of
// them. The clusters are simple: they start what fits when it comes; what waits starts by priority,
// then by number.
#ifndef MUSTER_TESTS_UNIT_CORE_SMALL_WORLD_H_
#define MUSTER_TESTS_UNIT_CORE_SMALL_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/core.h"

namespace muster::core {

struct WorldJob {
  absl::Duration arrival;
  uint64_t cpus = 1;  // of each node
  uint32_t nodes = 1;
  std::optional<absl::Duration> limit = {};
  absl::Duration run_time;  // at most the limit
  int32_t priority = 0;
  bool is_preemptible = false;
  std::string cluster = {};  // the only one that may have it; empty: any
};

struct WorldCluster {
  std::string name;
  uint32_t nodes = 1;
  uint64_t cpus = 8;  // of each node
};

class SmallFleet {
 public:
  SmallFleet(const Options& options, std::vector<WorldCluster> clusters,
             std::vector<WorldJob> jobs);

  // Goes on until all jobs have ended, or for as long. Returns what went wrong first; empty:
  // nothing.
  std::string RunAll(absl::Duration at_most);

  // ---- what was seen
  int preempted() const { return preempted_; }  // runs that ended for another job
  int kept() const { return static_cast<int>(kept_jobs_.size()); }  // jobs for which room was
  // The time that the job with the most cores has waited.
  absl::Duration WaitOfLargest() const { return wait_of_largest_; }
  // The core's changes as text, for comparisons.
  const std::vector<std::string>& history() const { return history_; }

 private:
  struct Run {
    uint64_t job = 0;
    std::string key;
    size_t cluster = 0;
    bool is_told = false;  // that it waits
    bool is_running = false;
    absl::Duration end = {};
  };
  struct Place {
    WorldCluster is;
    uint64_t taken = 0;  // cores
    uint64_t sequence = 0;
    std::vector<Run> runs = {};  // that have not ended
  };

  absl::Time Now() const { return absl::FromUnixSeconds(1'750'000'000) + now_; }
  const WorldJob& JobOf(uint64_t id) const { return jobs_.at(index_.at(id)); }
  static uint64_t CoresOf(const WorldJob& job) { return job.cpus * job.nodes; }
  void Fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  void Connect();
  void Submit(size_t index);
  void Tell(Input input);
  void Take(const Output& out);
  void Report(Place* place, const Run& run, v1::RunState state);
  void Assign(const SendAssignments& sent);
  void NotePreemption(const PutWithdrawal& change);
  void EndRuns();
  // Ends what the core wants to be ended. Returns whether there was anything.
  bool EndAsked();
  bool StartRuns(Place* place);
  void Settle();
  // Looks at what is kept, and whether those for whom it was have started in time.
  void LookAtKept();
  absl::Duration NextTime() const;

  std::vector<WorldJob> jobs_;
  std::vector<Place> places_;
  std::unique_ptr<Core> core_;
  absl::Duration now_;
  size_t next_arrival_ = 0;                  // in the order of arrival
  std::map<uint64_t, size_t> index_;         // of jobs, by number
  std::set<uint64_t> ended_, placed_;        // jobs; placed: have a run that has not ended
  std::map<uint64_t, absl::Time> start_by_;  // the earliest start that was expected of a kept job
  std::set<std::string> to_end_;             // run keys
  std::map<uint64_t, int> preemptions_;      // by job
  int preempted_ = 0;
  std::set<uint64_t> kept_jobs_;
  std::map<std::string, std::set<uint64_t>> kept_on_;  // by cluster, as seen last
  uint64_t largest_ = 0;                               // cores
  absl::Duration wait_of_largest_;
  std::vector<std::string> history_;
  std::string wrong_;
};

}  // namespace muster::core

#endif  // MUSTER_TESTS_UNIT_CORE_SMALL_WORLD_H_
