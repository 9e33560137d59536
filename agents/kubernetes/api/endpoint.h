// The API server that the settings name, and the namespaces there.
#ifndef MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_
#define MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "agents/kubernetes/kubernetes.h"

namespace muster::kubernetes {

// From the kubeconfig files, or else the account of the pod that this process runs in. Errors are
// those of ReadKubeconfig and InClusterEndpoint, and INVALID_ARGUMENT for a context without a file.
absl::StatusOr<Endpoint> FindEndpoint(const KubernetesConfig& config);

// The configuration with its namespaces filled in: name_space is set, and namespaces are all that
// there are, that one first, each once.
KubernetesConfig WithNamespaces(KubernetesConfig config, const Endpoint& endpoint);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_
