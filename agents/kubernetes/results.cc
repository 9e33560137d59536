// Results of runs on volumes that the agent itself sees.
#include <memory>
#include <string>

#include "agents/core/run_files.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/manifest/pod_volumes.h"
#include "agents/kubernetes/manifest/storage_places.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::kubernetes {

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenResults(const KubernetesConfig& config,
                                                              const std::string& directory) {
  const std::optional<ReadablePlace> place = FindReadable(config, directory);
  if (place.has_value()) return agents::OpenLocalRunFiles(place->root, place->below);
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
      fmt::format("the results are in {}, and the agent of this cluster does not see that storage "
                  "root (kubernetes.agent_roots); read them where the volume is",
                  contract::Quoted(directory)));
}

std::string KubernetesBackend::ResultsDirectory(const agents::RunHandle& run) const {
  if (run.assignment == nullptr) return {};
  const absl::StatusOr<agent::v1::Assignment> resolved = OnStorage(*run.assignment, config_);
  return resolved.ok() ? resolved->spec().results_directory() : std::string();
}

std::string KubernetesBackend::ReadableResults(const std::string& results_directory) const {
  const std::optional<ReadablePlace> place = FindReadable(config_, results_directory);
  if (!place.has_value()) return {};
  return place->below.empty() ? place->root : fmt::format("{}/{}", place->root, place->below);
}

}  // namespace muster::kubernetes
