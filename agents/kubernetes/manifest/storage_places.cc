#include "agents/kubernetes/manifest/storage_places.h"

#include <algorithm>

#include "contract/path_within.h"

namespace muster::kubernetes {

contract::ClusterStorage StorageOf(const KubernetesConfig& config) {
  contract::ClusterStorage storage;
  storage.cluster = config.cluster;
  for (const auto& [name, root] : config.storage_roots) storage.roots[name] = root.mount;
  return storage;
}

const std::pair<const std::string, StorageRoot>* RootOf(const KubernetesConfig& config,
                                                        std::string_view path) {
  const std::pair<const std::string, StorageRoot>* best = nullptr;
  for (const auto& entry : config.storage_roots) {
    if (!contract::IsWithin(path, entry.second.mount)) continue;
    if (best == nullptr || entry.second.mount.size() > best->second.mount.size()) best = &entry;
  }
  return best;
}

std::string Below(std::string_view path, std::string_view directory) {
  path.remove_prefix(std::min(path.size(), directory.size()));
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

std::optional<ReadablePlace> FindReadable(const KubernetesConfig& config, std::string_view path) {
  const auto* root = RootOf(config, path);
  if (root == nullptr) return std::nullopt;
  const auto seen = config.agent_roots.find(root->first);
  if (seen == config.agent_roots.end()) return std::nullopt;
  return ReadablePlace{seen->second, Below(path, root->second.mount)};
}

}  // namespace muster::kubernetes
