#include "agents/slurm/leases.h"

#include <algorithm>

#include "agents/core/lease_file.h"
#include "contract/errors.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Returns whether a batch script of the job may get more than one node. Options that count tasks or
// name nodes leave that to Slurm.
bool MayGetNodes(const v1::JobSpec& spec) {
  if (spec.nodes() > 1) return true;
  const auto& options = spec.slurm().extra_options();
  const bool is_one = std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option == "--nodes=1" || option == "--nodes=1-1";
  });
  return !is_one && (contract::ShapesPart(spec.slurm(), contract::AllocationPart::kTasks) ||
                     spec.slurm().nodelist().find_first_of(",[") != std::string::npos);
}

}  // namespace

// A renewal that comes to a node late, because a file server or the agent's own write was slow, is
// bounded by the end that it names: a node does not go beyond that by its own clock, which may be
// behind, by more than the bound of the clocks' difference. So how long a file server lets its
// clients see an old file (NFS: acregmax, acdirmax) only ends leases early.
absl::Duration LeaseFenceDelay() {
  constexpr absl::Duration kClocks = absl::Milliseconds(2 * agents::kLeaseClockSkewMs);
  constexpr absl::Duration kLook = absl::Milliseconds(agents::kLeaseLookMs);
  constexpr absl::Duration kKill = absl::Milliseconds(agents::kLeaseKillTimeMs);
  return kClocks + kLook + kLeaseGrace + kKill;
}

std::string LeaseTermsFile() {
  return fmt::format("{} {} {}\n", agents::kLeaseLookMs, agents::kLeaseClockSkewMs,
                     absl::ToInt64Milliseconds(kLeaseGrace));
}

absl::Status CheckKeepsLease(const v1::JobSpec& spec) {
  if (spec.on_cluster_loss() != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED ||
      !spec.slurm().has_batch_script() || !MayGetNodes(spec)) {
    return absl::OkStatus();
  }
  return contract::BadField(
      "on_cluster_loss",
      "FAIL_OVER_WHEN_FENCED: a batch script starts by itself what runs on its other nodes, where "
      "nobody would stop that when the run's lease ends; give it one node (slurm.extra_options "
      "--nodes=1, sbatch --nodes=1), submit a command, which Muster starts on each node, or choose "
      "WAIT or FAIL_OVER_NOW");
}

}  // namespace muster::slurm
