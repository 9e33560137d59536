// Decides whether a pod may be on a node at all: its selector, requirements and tolerations against
// the node's labels and taints. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_FITTING_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_FITTING_H_

#include <string>
#include <vector>

#include "agents/kubernetes/cluster/capacity.h"

namespace muster::kubernetes {

// Returns the reasons that keep the run from the node for good, each in words that begin with a
// verb or "its": labels, taints of the cluster's operator, the type of its GPUs, that the run
// excludes it. Empty: nothing does.
std::vector<std::string> Objections(const RunNeed& need, const NodeObject& node);

// Returns the reason that keeps it from the node for the time being: "cordoned", "not ready: ...",
// taints that Kubernetes sets by itself. Empty: nothing does.
std::string OutOfService(const RunNeed& need, const NodeObject& node);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_FITTING_H_
