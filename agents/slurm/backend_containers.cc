// Finds out whether the cluster runs jobs with an image at all.
#include "agents/slurm/backend.h"

namespace muster::slurm {

// The login host's srun has the options that the nodes' has. It asks no daemon, and costs a cluster
// without Pyxis a process for each run that cannot be.
std::optional<v1::Failure> SlurmBackend::WhyNoContainers() {
  {
    const std::lock_guard lock(mutex_);
    if (has_containers_) return std::nullopt;
  }
  const absl::StatusOr<hosts::CommandResult> help = commands_.RunUncounted({"srun", "--help"});
  if (!help.ok() || !help->ok()) return std::nullopt;
  if (KnowsContainers(help->stdout_data)) {
    const std::lock_guard lock(mutex_);
    has_containers_ = true;
    return std::nullopt;
  }
  v1::Failure failure;
  failure.set_failure_class(v1::FAILURE_CLASS_CONFIG);
  failure.set_message(
      "The cluster runs no jobs with an image: its srun does not know --container-image, because "
      "it has no Pyxis.");
  failure.set_suggestion("Use another cluster, or have its operator install Pyxis and enroot.");
  return failure;
}

}  // namespace muster::slurm
