// Finds which storage root a path of a container is in, and where the agent itself sees it. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_STORAGE_PLACES_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_STORAGE_PLACES_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agents/kubernetes/settings/kubernetes_config.h"
#include "contract/storage_uri.h"

namespace muster::kubernetes {

contract::ClusterStorage StorageOf(const KubernetesConfig& config);

// Returns the root that has the path, with its name; of several the deepest. Null: none has it.
const std::pair<const std::string, StorageRoot>* RootOf(const KubernetesConfig& config,
                                                        std::string_view path);

// Returns the path below the directory, without a '/' at either end; "" for the directory itself.
std::string Below(std::string_view path, std::string_view directory);

// A place on the agent's own machine.
struct ReadablePlace {
  std::string root;   // absolute, the operator's
  std::string below;  // relative to it; what is there belongs to runs
};
// Returns the place at which the agent sees a path of a container; nothing if it does not.
std::optional<ReadablePlace> FindReadable(const KubernetesConfig& config, std::string_view path);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_STORAGE_PLACES_H_
