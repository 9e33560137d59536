// Keeps the leases of runs in one file for all of them, beside their directories.
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/outcomes.h"
#include "contract/errors.h"

namespace muster::slurm {

// The agent has no directory that all users' jobs could read and none could change, where jobs run
// as their users.
bool SlurmBackend::CanFence() const { return users_ == nullptr; }

// One write, however many runs there are. It is not synced: a node reads it, or the lease ends.
absl::Status SlurmBackend::RenewLeases(absl::Duration remaining) {
  const std::string directory = RunPaths::LeaseDirectory(config_.run_dir);
  agents::LeaseFile lease;
  {
    const MutexLock lock(mutex_);
    lease = agents::NextLease(lease_number_, absl::ToUnixMillis(absl::Now()),
                              absl::ToInt64Milliseconds(remaining));
    lease_number_ = lease.number;
  }
  absl::Status status = host_->MakeDirectories(directory, hosts::kPrivateDirectory);
  if (!status.ok()) return status;
  return host_->WriteFile(RunPaths::LeaseFilePath(config_.run_dir), FormatLeaseFile(lease),
                          {.mode = hosts::kPrivateFile, .sync = false});
}

// Before the first renewal of this agent a job would find no file, or an old one.
std::optional<agents::LaunchOutcome> SlurmBackend::AwaitLease(
    const agent::v1::Assignment& assignment) {
  if (!agents::KeepsLease(assignment)) return std::nullopt;
  if (!CanFence()) {
    return RefusedBecause(contract::BadField(
        "on_cluster_loss",
        "FAIL_OVER_WHEN_FENCED: jobs run as their users here, and their nodes do not stop them "
        "when a lease ends; choose WAIT or FAIL_OVER_NOW, or another cluster"));
  }
  const MutexLock lock(mutex_);
  if (lease_number_ > 0) return std::nullopt;
  return Deferred(absl::UnavailableError(
      "not submitted yet: its lease (on_cluster_loss) waits for the broker's next answer"));
}

}  // namespace muster::slurm
