// Computes where a run would find room: the resources of nodes less those of their pods. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::kubernetes {

// A node and its free resources. Cheap to copy.
struct NodeRoom {
  // Makes a room without pods.
  explicit NodeRoom(NodeObject object);

  std::shared_ptr<const NodeObject> node;
  std::shared_ptr<const Amounts> all;  // CapacityOf the node
  Amounts free;                        // never below 0
  Amounts kept = {};                   // kept for a run that waits for nodes, and no longer free
  Amounts for_runs = {};               // would be free without Muster's own runs
};

// The pods of a run that have not ended.
struct PodsThere {
  int64_t made = 0;
  int64_t placed = 0;  // those that are on nodes
};

// States the needs of a run: a number of pods that are alike.
struct RunNeed {
  std::string name_space = {};  // its limits apply to the run
  int64_t pods = 1;
  Amounts each;              // of one pod, which counts as a resource itself
  std::string gpu_resource;  // empty: it asks for no GPU
  std::string gpu_type;      // a value of gpu_type_label; empty: any
  std::string gpu_type_label;
  v1::KubernetesOptions options;                 // selector, required_nodes, tolerations, spread
  std::vector<std::string> excluded_nodes = {};  // earlier runs of the job failed there
  // True: the run's objects exist already, so that quotas have counted them.
  bool has_objects = false;
};

// Returns the needs of a job. `spec` has its defaults; the configuration, whose name_space is set,
// fills in what it leaves open.
RunNeed NeedOf(const v1::JobSpec& spec, const KubernetesConfig& config);
// Does the same with the nodes that the run must avoid.
RunNeed NeedOf(const agent::v1::Assignment& run, const KubernetesConfig& config);

// The reason why a run does not start now.
struct Misfit {
  // Waiting does not help: it would not fit even if all nodes were empty and in service and all
  // GPUs healthy.
  bool is_final = false;
  // Names the node that comes nearest and what it lacks: "node-1 has the most nvidia.com/gpu: 8, 16
  // are needed".
  std::string words;
  // The limits of its namespace keep it from starting, perhaps besides the nodes.
  bool is_limited = false;
  // It would fit if no room were kept for another run that waits for nodes.
  bool is_behind = false;

  friend bool operator==(const Misfit&, const Misfit&) = default;
};

// Returns why the run does not fit; nothing: all its pods have room now. Cordons, nodes that are
// not ready and Kubernetes' own taints are temporary, so that none of them makes a misfit final.
std::optional<Misfit> FindMisfit(const RunNeed& need, const std::vector<NodeRoom>& nodes);

// Returns whether all pods of the run would have room without Muster's own runs.
bool FitsBesideOthers(const RunNeed& need, const std::vector<NodeRoom>& nodes);

// Takes the room of the need's pods from the nodes, as far as they have it.
void Reserve(const RunNeed& need, std::vector<NodeRoom>* nodes);

// Keeps the run's share of each node that it could be on: room for as many of its pods as the node
// can hold, or less if less is free.
void KeepShares(const RunNeed& need, std::vector<NodeRoom>* nodes);

// Returns all resources of the node, including GPUs that are unhealthy or whose device plug-in is
// away.
Amounts CapacityOf(const NodeObject& node);

// Returns the number of the node's GPUs by type, as jobs name it: the value of the label for the
// first of gpu_resources, if the node has the label, otherwise the name of the resource.
std::map<std::string, uint32_t> GpuTypesOf(const NodeObject& node, const Amounts& amounts,
                                           const KubernetesConfig& config);

// Returns the values of the label on nodes that have GPUs of the first of gpu_resources.
std::set<std::string> GpuLabelsOf(const std::vector<NodeRoom>& nodes,
                                  const KubernetesConfig& config);

// Returns the type as the cluster spells it, where `labels` are those of GpuLabelsOf: selectors
// compare them with regard to case, and a part of a label is enough if no other label has it.
// Returns the type unchanged if it is none of the labels, or may be several.
std::string SpellGpuType(const std::string& type, const std::set<std::string>& labels,
                         const KubernetesConfig& config);
// INVALID_ARGUMENT: several types may be meant; names them.
absl::Status CheckGpuType(const v1::GpuRequest& gpus, const std::set<std::string>& labels,
                          const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_CAPACITY_H_
