// Results of runs on volumes that the agent itself sees.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "agents/core/run_files.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/manifest/pod_volumes.h"
#include "agents/kubernetes/manifest/storage_places.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/path_within.h"
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

std::string ReadableResults(const KubernetesConfig& config, const std::string& directory) {
  const std::optional<ReadablePlace> place = FindReadable(config, directory);
  if (!place.has_value()) return {};
  std::error_code error;
  const std::filesystem::path root = std::filesystem::weakly_canonical(place->root, error);
  const std::filesystem::path path = std::filesystem::weakly_canonical(root / place->below, error);
  return !error && contract::IsWithin(path.native(), root.native()) ? path.native() : "";
}

std::string KubernetesBackend::ResultsDirectory(const agents::RunHandle& run) const {
  if (run.assignment == nullptr) return {};
  const absl::StatusOr<agent::v1::Assignment> resolved = OnStorage(*run.assignment, config_);
  return resolved.ok() ? resolved->spec().results_directory() : std::string();
}

}  // namespace muster::kubernetes
