// Runs that would neither end nor begin: Slurm has forgotten them, or holds them for good.
#include "agents/slurm/backend.h"

namespace muster::slurm {

// batch.sh creates the claim as a file, and only if there is nothing of that name. A directory of
// that name is made only where no file is, and keeps every later job of the run from beginning.
bool SlurmBackend::Fence(const std::string& run_key) {
  constexpr uint32_t kPrivateDirectory = 0700;
  return host_->MakeDirectories(PathsOf(run_key).claim(), kPrivateDirectory).ok();
}

void SlurmBackend::EndFailedLaunch(const RunFacts& facts) {
  if (HasEnded(facts.queue->state.phase)) return;
  // Not counted as a cancel that was asked for. Asked again at the next look if it fails.
  (void)scheduler_->Cancel(facts.job_id);
}

}  // namespace muster::slurm
