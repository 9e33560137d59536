// Asks everything that a preflight of a Kubernetes cluster looks at. checks.h decides what the
// answers mean; a check that depends on one that failed is skipped.
#ifndef MUSTER_AGENTS_KUBERNETES_CHECKS_PREFLIGHT_H_
#define MUSTER_AGENTS_KUBERNETES_CHECKS_PREFLIGHT_H_

#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// Any thread may use it. Looks anew, changes nothing, and asks some twenty times, and some thirty
// times more for each namespace. `known_identity` is that of the cluster whose runs are here; empty
// if not known.
v1::ClusterChecks Check(const KubernetesConfig& config, Api* api,
                        const std::string& known_identity = "");

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CHECKS_PREFLIGHT_H_
