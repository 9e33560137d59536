// Facts about its cluster that the agent publishes, by which the broker judges jobs before it
// accepts them. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_ADMISSION_FACTS_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_ADMISSION_FACTS_H_

#include <vector>

#include "agents/kubernetes/cluster/capacity.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// Groups the nodes that are alike. More than contract::kMaxNodeProfiles kinds: none.
v1::NodeFacts NodeFactsOf(const std::vector<NodeRoom>& nodes);
// Tells whether the nodes differ in the facts of NodeFactsOf.
bool AreToldApart(const NodeObject& a, const NodeObject& b);

// Leaves out what makes the facts larger than contract::kMaxAdmissionBytes: the nodes first, then
// the names of each namespace, then those of the cluster.
void KeepWithinBounds(v1::AdmissionFacts* facts);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_ADMISSION_FACTS_H_
