// Decides whether a run would start, by all that is seen of a cluster: its nodes, and the limits of
// the run's namespace. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_

#include <memory>
#include <optional>

#include "agents/kubernetes/cluster/capacity.h"
#include "agents/kubernetes/cluster/inventory.h"
#include "agents/kubernetes/kubernetes.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// A run that comes before others.
struct Claim {
  std::shared_ptr<const agent::v1::Assignment> run;
  // The limits of its namespace keep it from starting.
  bool is_limited = false;
  // It has waited long for nodes: those that come after it are on none where it could be.
  bool has_waited_long = false;
};

// The cluster as one look has shown it, of which runs take their room one after another.
class RoomLeft {
 public:
  virtual ~RoomLeft() = default;
  // Why the run would not start now. Its Job and what that owns are there. Nothing: it would, or
  // what would tell is not known.
  virtual std::optional<Misfit> WaitsFor(const agent::v1::Assignment& run) const = 0;
  // Keeps what the claim says from runs that are asked for after it; those of its run's pods that
  // are there already are known by their run key. False: it keeps nothing, because its run has
  // waited long for nodes that others than Muster's runs keep from it.
  virtual bool Leave(const Claim& claim) = 0;
};

// Returns the needs of the run on that cluster, with the type of its GPUs as the cluster spells it.
RunNeed NeedIn(const agent::v1::Assignment& run, const KubernetesConfig& config, const Seen& seen);

// Takes the room of a run that comes first: of the nodes for its pods that are on none yet, and of
// the quotas for those that are not made yet. Quotas have counted the others.
void LeaveRoom(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen);

// The same of a run that the limits of its namespace keep from starting: it keeps what there is of
// them, and no nodes, for runs of other namespaces may have those meanwhile.
void LeaveLimits(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen);

// Takes the run's share of each node that it could be on, so that these become free for it, and
// what it will take of the quotas. False: nothing, because it would not fit there even when all
// that Muster runs has ended: who knows when it will, and neither is to stand idle so long.
bool LeaveShares(const agent::v1::Assignment& run, const KubernetesConfig& config, Seen* seen);

// Nothing: it would start now, or the facts that would tell are not known. The longer obstacle
// comes first: the nodes, unless they are kept for another run alone, and then the limits.
std::optional<Misfit> FindObstacle(const RunNeed& need, const Seen& seen);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_OBSTACLE_H_
