// Turns the observations of a cluster into its inventory and its details. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_INVENTORY_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_INVENTORY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/cluster/capacity.h"
#include "agents/kubernetes/cluster/namespace_limits.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "contract/issues.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// The pods that are seen.
enum class PodScope { kNone, kNamespace, kCluster };

// A namespace that runs are in.
struct SeenNamespace {
  std::string name;
  // With "missing", "terminating" or "forbidden" the server takes no runs there, and `problem` has
  // its words; its pool takes no jobs. Empty: nothing is known against it.
  std::string state = {};
  std::string problem = {};
  std::vector<QuotaLine> quotas = {};
  std::vector<RangeLine> ranges = {};
};

// The objects that the watches have brought by now.
struct Seen {
  std::vector<SeenNamespace> namespaces;  // the one of runs that name none first
  // False: they were never listed, because of nodes_problem, and `rooms` says nothing.
  bool knows_nodes = false;
  absl::Status nodes_problem;
  std::vector<NodeRoom> rooms;      // by name
  std::set<std::string> gpu_types;  // as labels tell them
  PodScope pod_scope = PodScope::kNone;
  absl::Status pods_problem;  // why not those of the whole cluster
  std::vector<PodUse> pods;   // for DetailsOf alone

  // Null: it is not one of the agent's.
  SeenNamespace* Find(const std::string& name);
  const SeenNamespace* Find(const std::string& name) const;
};

// Judges what keeps runs out of a namespace: `answer` is the server's to a GET of it, and `runs`
// whether the objects that runs make there can be seen.
void JudgeNamespace(const absl::StatusOr<Json>& answer, const absl::Status& runs,
                    SeenNamespace* space);

// Describes a namespace whose state is not empty, for the sentences that are made of it.
contract::ShutNamespace ShutOf(const SeenNamespace& space);

// Returns the namespaces as pools. It has no node groups if nodes are not known. On a cluster that
// has none they are not available, nor is one in which the server takes no runs.
std::vector<v1::Pool> PoolsOf(const Seen& seen, const KubernetesConfig& config);
// Lists the things that are missing or odd, with advice.
std::vector<v1::ClusterIssue> IssuesOf(const Seen& seen, const KubernetesConfig& config);
v1::ClusterDetails DetailsOf(const Seen& seen, const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_INVENTORY_H_
