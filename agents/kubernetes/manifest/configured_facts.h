// The admission facts of a cluster that its configuration alone gives. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_CONFIGURED_FACTS_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_CONFIGURED_FACTS_H_

#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// Returns the facts that the configuration alone gives. Its namespaces have their names, and
// nothing else.
v1::AdmissionFacts ConfiguredFacts(const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_CONFIGURED_FACTS_H_
