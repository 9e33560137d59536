#include "agents/kubernetes/manifest/configured_facts.h"

#include <string>

#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/manifest/storage_places.h"
#include "contract/storage_uri.h"

namespace muster::kubernetes {

v1::AdmissionFacts ConfiguredFacts(const KubernetesConfig& config) {
  v1::AdmissionFacts facts;
  facts.set_max_archive_bytes(kMaxArchiveBytes);
  v1::KubernetesFacts& own = *facts.mutable_kubernetes();
  for (const auto& [name, root] : config.storage_roots)
    (*own.mutable_storage_roots())[name] = root.mount;
  own.set_allows_host_path(config.allow_host_path);
  own.set_allows_host_network(config.allow_host_network);
  own.set_allows_privileged(config.allow_privileged);
  own.mutable_operator_secrets()->Assign(config.image_pull_secrets.begin(),
                                         config.image_pull_secrets.end());
  own.set_default_cpu_millis(config.default_cpu_millis);
  own.set_default_memory_bytes(config.default_memory_bytes);
  own.set_shares_gpu_nodes(config.default_gpu_share);
  own.mutable_gpu_resources()->Assign(config.gpu_resources.begin(), config.gpu_resources.end());
  own.set_gpu_type_label(config.gpu_type_label);
  for (const auto& [name, directory] : config.agent_roots) own.add_agent_roots(name);
  if (config.results_root.empty()) {
    facts.set_results_root("");
  } else if (const auto root = contract::ResolveStorageUri("kubernetes.results_root",
                                                           config.results_root, StorageOf(config));
             root.ok()) {
    facts.set_results_root(*root);
  }
  for (const std::string& name : config.namespaces) own.add_namespaces()->set_name(name);
  return facts;
}

}  // namespace muster::kubernetes
