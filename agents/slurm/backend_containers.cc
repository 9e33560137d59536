// Finds out whether the cluster runs jobs with an image at all.
#include "agents/slurm/backend.h"
#include "contract/failures.h"

namespace muster::slurm {

// The login host's srun has the options that the nodes' has. It asks no daemon, and costs a cluster
// without Pyxis a process for each run that cannot be.
std::optional<v1::Failure> SlurmBackend::WhyNoContainers() {
  {
    const MutexLock lock(mutex_);
    if (has_containers_) return std::nullopt;
  }
  const absl::StatusOr<hosts::CommandResult> help = commands_.RunUncounted({"srun", "--help"});
  if (!help.ok() || !help->ok()) return std::nullopt;
  if (KnowsContainers(help->stdout_data)) {
    const MutexLock lock(mutex_);
    has_containers_ = true;
    return std::nullopt;
  }
  return contract::MakeFailure(
      v1::FAILURE_CODE_NO_CONTAINERS, v1::FAILURE_CLASS_CONFIG,
      {.meaning = "its srun does not know --container-image, because it has no Pyxis",
       .cause = contract::FailureCause::kNoPyxis});
}

}  // namespace muster::slurm
