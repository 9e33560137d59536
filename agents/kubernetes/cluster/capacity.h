// Where a run would find room: what nodes have, less what pods take of them. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::kubernetes {

// A node and what is not taken of it.
struct NodeRoom {
  NodeObject node;
  Amounts free;           // never below 0
  Amounts kept = {};      // was free, and is kept for a run that waits for nodes
  Amounts for_runs = {};  // would be free if nothing of Muster's were there
};

// Pods that are bound to no node, or to one that is not among these, count nowhere.
std::vector<NodeRoom> RoomOf(std::vector<NodeObject> nodes, const std::vector<PodUse>& pods);

// The request of a run to nodes: so many pods, all alike.
struct RunNeed {
  std::string name_space = {};  // whose limits are the run's
  int64_t pods = 1;
  Amounts each;              // of one pod, itself included
  std::string gpu_resource;  // empty: it asks for no GPU
  std::string gpu_type;      // a value of gpu_type_label; empty: any
  std::string gpu_type_label;
  v1::KubernetesOptions options;                 // selector, required_nodes, tolerations, spread
  std::vector<std::string> excluded_nodes = {};  // earlier runs of the job failed there
  // Its Job, and what that owns, are there already, so that quotas have counted them.
  bool has_objects = false;
};

// `spec` has its defaults; what it leaves open is filled in from the configuration, whose
// name_space is set.
RunNeed NeedOf(const v1::JobSpec& spec, const KubernetesConfig& config);
// With the nodes that it has to keep away from.
RunNeed NeedOf(const agent::v1::Assignment& run, const KubernetesConfig& config);

// Why a run does not start where it is.
struct Misfit {
  // No waiting helps: it would not fit if the nodes were empty, all in service and all their GPUs
  // well.
  bool is_final = false;
  // Names the node that comes nearest and what it lacks: "node-1 has the most nvidia.com/gpu: 8, 16
  // are needed".
  std::string words;
  // The limits of its namespace keep it from starting, perhaps beside the nodes.
  bool is_limited = false;
  // It would fit, were nothing kept for another run that waits for nodes.
  bool is_behind = false;

  friend bool operator==(const Misfit&, const Misfit&) = default;
};

// Nothing: all its pods have room now. Cordons, nodes that are not ready and Kubernetes' own taints
// pass, so none of them makes a misfit final.
std::optional<Misfit> FindMisfit(const RunNeed& need, const std::vector<NodeRoom>& nodes);

// Returns whether all its pods had room if nothing of Muster's were there.
bool FitsBesideOthers(const RunNeed& need, const std::vector<NodeRoom>& nodes);

// Takes the run's room from the nodes, as far as they have it.
void Reserve(const RunNeed& need, std::vector<NodeRoom>* nodes);

// Keeps on each node that the run could be on the room that as many of its pods as fit there would
// take, or the room that there is for them: it cannot use the rest.
void KeepShares(const RunNeed& need, std::vector<NodeRoom>* nodes);

// All that the node has; GPUs whose device plug-in is away, or that are not well, are among it.
Amounts CapacityOf(const NodeObject& node);

// The types of the node's GPUs with their number, as jobs ask for them: the value of the label for
// the first of gpu_resources, if the node has it, and the resource's name else.
std::map<std::string, uint32_t> GpuTypesOf(const NodeObject& node, const Amounts& amounts,
                                           const KubernetesConfig& config);

// The values of the label on nodes that have GPUs of the first of gpu_resources.
std::set<std::string> GpuLabelsOf(const std::vector<NodeObject>& nodes,
                                  const KubernetesConfig& config);

// Returns the type as the cluster spells it, where `labels` are those of GpuLabelsOf: selectors
// compare them with regard to case, and a part of a label is enough if no other label has it.
// Returns the type unchanged if it is none of the labels, or may be several.
std::string SpellGpuType(const std::string& type, const std::set<std::string>& labels,
                         const KubernetesConfig& config);
// INVALID_ARGUMENT: it may be several; names them.
absl::Status CheckGpuType(const v1::GpuRequest& gpus, const std::set<std::string>& labels,
                          const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_
