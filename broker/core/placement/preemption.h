// Chooses which preemptible runs of a cluster end, so that a job finds its nodes.
//
// Room in sum is not enough: the choice is made node by node. It is greedy: the node that costs the
// fewest runs first, and on a node those first that give the most of what is lacking; of those that
// give the same, the newest. Runs that turn out not to be needed go on.
//
// Pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_PREEMPTION_H_
#define MUSTER_BROKER_CORE_PLACEMENT_PREEMPTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/placement/amounts.h"

namespace muster::core::placement {

// So many runs end for one job at most: with more, it is the cluster that is too small for both.
inline constexpr size_t kMostEndedForOne = 256;

// Jobs that runs to end are looked for in one round, beside those that have waited.
inline constexpr int kMostPreemptionsTried = 4;

// The looks for runs to end: what is left of the bounds of this round, and where the next round
// goes on if that is not enough for all, so that each job has its turn at each cluster.
struct PreemptionLooks {
  int tries_left = 0;
  size_t runs_left = 0;
  bool is_spent = false;    // a cluster with more runs than are left was not visited
  uint64_t next_job = 0;    // the job that it was for; 0: none
  size_t next_cluster = 0;  // the place of that cluster among those of the job

  // Begins a round that visits so many runs.
  void Begin(size_t runs) {
    tries_left = kMostPreemptionsTried;
    runs_left = runs;
    is_spent = false;
  }
  // Returns the first cluster to visit for the job.
  size_t Resume(uint64_t job) {
    if (next_job != job) return 0;
    next_job = 0;
    return next_cluster;
  }
  // False: no more clusters are visited in this round.
  bool Visit(size_t runs, uint64_t job, size_t cluster) {
    if (is_spent) return false;
    if (runs <= runs_left) {
      runs_left -= runs;
      return true;
    }
    is_spent = true;
    next_job = job;
    next_cluster = cluster;
    return false;
  }
};

// A run that may end.
struct PreemptibleRun {
  absl::Time began;
  Amounts each;  // what it gives back on each of its nodes
  std::vector<std::string> nodes;
};
// A node, and the part of it that is free, as far as that is known.
struct NodeRoom {
  std::string name;
  Amounts free;
};

// Returns the indexes of the runs that end, in their order; nothing: their end would not be enough.
// Empty: nothing has to end. `each` is the need of each of the job's `count` nodes; `free_nodes`:
// other nodes that have it.
std::optional<std::vector<size_t>> ChooseRunsToEnd(const Amounts& each, uint32_t count,
                                                   uint64_t free_nodes,
                                                   const std::vector<NodeRoom>& nodes,
                                                   const std::vector<PreemptibleRun>& runs);

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_PREEMPTION_H_
