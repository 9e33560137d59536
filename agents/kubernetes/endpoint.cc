#include "agents/kubernetes/endpoint.h"

#include "fmt/format.h"

namespace muster::kubernetes {

absl::StatusOr<Endpoint> FindEndpoint(const KubernetesConfig& config) {
  const std::vector<std::string> files =
      config.kubeconfig.empty() ? DefaultKubeconfigFiles() : config.kubeconfig;
  if (!files.empty()) return ReadKubeconfig(files, config.context);
  if (!config.context.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "kubernetes.context is \"{}\", and there is no kubeconfig file; set kubernetes.kubeconfig",
        config.context));
  }
  return InClusterEndpoint();
}

}  // namespace muster::kubernetes
