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
