// Tells whether a node of Kubernetes takes a pod, by its labels, its taints and the type of its
// GPUs. Pure. The agent applies it to live nodes, the broker to published facts.
#ifndef MUSTER_PROTO_CONTRACT_NODE_MATCH_H_
#define MUSTER_PROTO_CONTRACT_NODE_MATCH_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

struct NodeTaint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
};

// The demand of a pod on a node, except amounts. The references outlive the object.
struct NodeAsk {
  const v1::KubernetesOptions& options;  // node_selector, required_nodes, tolerations
  const std::string& gpu_resource;       // empty: it asks for no GPU
  const std::string& gpu_type;           // a value of gpu_type_label; empty: any
  const std::string& gpu_type_label;
};

// Returns the value of a node's label; null if the node does not have the label.
using LabelFinder = absl::FunctionRef<const std::string*(const std::string& key)>;

// Returns the reasons that keep the pod from the node for good, each in words that begin with a
// verb. Empty: there are none.
std::vector<std::string> NodeObjections(const NodeAsk& ask, LabelFinder label,
                                        const std::vector<NodeTaint>& taints);

// Tells whether the taint keeps the pod off. A pod that asks for a resource tolerates its taint.
bool KeepsOff(const NodeAsk& ask, const NodeTaint& taint);

// Tells whether Kubernetes or its autoscaler sets the taint and takes it away by itself.
bool IsPassing(const NodeTaint& taint);

// Returns "team=vision:NoSchedule".
std::string Written(const NodeTaint& taint);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_NODE_MATCH_H_
