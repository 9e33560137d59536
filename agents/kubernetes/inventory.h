// What is seen of a cluster as what the broker and people are told of it. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_INVENTORY_H_
#define MUSTER_AGENTS_KUBERNETES_INVENTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/kubernetes/capacity.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/namespace_limits.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// Whose pods are seen.
enum class PodScope { kNone, kNamespace, kCluster };

// What the watches have brought by now.
struct Seen {
  std::string name_space;
  // False: they were never listed, because of nodes_problem, and `rooms` says nothing.
  bool knows_nodes = false;
  absl::Status nodes_problem;
  std::vector<NodeRoom> rooms;  // by name
  PodScope pod_scope = PodScope::kNone;
  absl::Status pods_problem;  // why not those of the whole cluster
  std::vector<PodUse> pods;
  std::vector<QuotaLine> quotas;
  std::vector<RangeLine> ranges;
};

// The namespace as a pool. Without node groups if nodes are not known; a cluster that has none is
// not available.
v1::Pool PoolOf(const Seen& seen, const KubernetesConfig& config);
// What is missing or odd, with what to do about it.
std::vector<std::string> WarningsOf(const Seen& seen, const KubernetesConfig& config);
v1::ClusterDetails DetailsOf(const Seen& seen, const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_INVENTORY_H_
