// Decides whether a run would start, by the cluster's nodes and the limits of the run's namespace.
// Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/kubernetes/cluster/capacity.h"
#include "agents/kubernetes/cluster/inventory.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// A run that comes before others, and for which room is kept.
struct Claim {
  std::shared_ptr<const agent::v1::Assignment> run;
  // The limits of its namespace keep it from starting.
  bool is_limited = false;
  // It has waited long for nodes, so that later runs may not use its share of them.
  bool has_waited_long = false;
};

// The cluster as one look has shown it. Runs take their room from it one after another.
class RoomLeft {
 public:
  virtual ~RoomLeft() = default;
  // Returns why the run, whose objects exist, would not start now. Nothing: it would, or too little
  // is known.
  virtual std::optional<Misfit> WaitsFor(const agent::v1::Assignment& run) const = 0;
  // Keeps the room of the claim from runs that come after it. False: nothing is kept, because the
  // run has waited long for nodes that pods of others keep from it.
  virtual bool Leave(const Claim& claim) = 0;
};

// Returns the needs of the run on that cluster, with the type of its GPUs as the cluster spells it,
// and with its GPUs' share of the nodes where its job leaves cores or memory open.
RunNeed NeedIn(const agent::v1::Assignment& run, const KubernetesConfig& config, const Seen& seen);

// Counts the pods of runs that come first and ask for the same, as far as they have not come yet.
struct PodsToCome {
  int64_t unmade = 0;    // quotas have not counted them
  int64_t unplaced = 0;  // they are on no node

  void Add(const RunNeed& need, PodsThere there);
};

// Takes the room of these pods: on nodes, and of the quotas. `need` is that of each run.
void LeaveRoom(const RunNeed& need, PodsToCome pods, Seen* seen);

// Takes the run's part of the quotas alone: the limits of its namespace keep it from starting, and
// runs of other namespaces may use the nodes meanwhile.
void LeaveLimits(const RunNeed& need, Seen* seen);

// Takes the run's share of each node that it could be on, so that these become free for it, and its
// part of the quotas. False: takes nothing, because the run would not fit even after the end of all
// of Muster's runs, and its room must not stand idle that long.
bool LeaveShares(const RunNeed& need, Seen* seen);

// Returns why the run would not start now; nothing: it would, or too little is known. The obstacle
// that lasts longer comes first: the nodes, unless they are only kept for another run, then the
// limits.
std::optional<Misfit> FindObstacle(const RunNeed& need, const Seen& seen);

// The cluster as seen, with the room of runs that are starting taken from it: of each kind, runs
// that ask for the same. `pods_of`: the pods of a run. The configuration must outlive the result.
using Alike = std::vector<std::shared_ptr<const agent::v1::Assignment>>;
std::unique_ptr<RoomLeft> RoomBehind(const std::vector<Alike>& starting,
                                     const std::function<PodsThere(const std::string&)>& pods_of,
                                     const KubernetesConfig& config, Seen seen);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_
