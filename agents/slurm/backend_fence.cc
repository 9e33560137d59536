// Runs that Slurm has forgotten before they began.
#include "agents/hosts/private_modes.h"
#include "agents/slurm/backend.h"

namespace muster::slurm {

// batch.sh creates the claim as a file, and only if there is nothing of that name. A directory of
// that name is made only where no file is, and keeps every later job of the run from beginning.
bool SlurmBackend::Fence(const std::string& run_key) {
  return host_->MakeDirectories(PathsOf(run_key).claim(), hosts::kPrivateDirectory).ok();
}

}  // namespace muster::slurm
