#include "agents/kubernetes/api/endpoint.h"

#include <algorithm>
#include <utility>

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

KubernetesConfig WithNamespaces(KubernetesConfig config, const Endpoint& endpoint) {
  if (config.name_space.empty()) config.name_space = endpoint.name_space;
  std::vector<std::string> all = {config.name_space};
  for (std::string& name : config.namespaces) {
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
  }
  config.namespaces = std::move(all);
  return config;
}

}  // namespace muster::kubernetes
