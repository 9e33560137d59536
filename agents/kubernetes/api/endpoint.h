// The API server that the settings name, and the namespaces there.
#ifndef MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_
#define MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "agents/kubernetes/settings/kubernetes_config.h"

namespace muster::kubernetes {

// Goes by the kubeconfig files, or else the account of this process's pod. Errors are those of
// ReadKubeconfig and InClusterEndpoint, and INVALID_ARGUMENT for a context without a file.
absl::StatusOr<Endpoint> FindEndpoint(const KubernetesConfig& config);

// Returns the configuration with its namespaces filled in: name_space is set, and namespaces are
// all that there are, that one first, each once.
KubernetesConfig WithNamespaces(KubernetesConfig config, const Endpoint& endpoint);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_ENDPOINT_H_
