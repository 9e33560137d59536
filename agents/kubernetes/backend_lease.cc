// Leases of runs, see Capabilities::renew_leases.
#include "agents/kubernetes/backend.h"
#include "contract/errors.h"

namespace muster::kubernetes {

absl::Status KubernetesBackend::OpenLease(const agent::v1::Assignment& assignment,
                                          const std::string& name_space) {
  if (!agents::KeepsLease(assignment)) return absl::OkStatus();
  return leases_.Open(name_space, assignment.run_key());
}

absl::Status KubernetesBackend::CheckKeepsLease(const agent::v1::Assignment& assignment) {
  if (!agents::KeepsLease(assignment) || leases_.MayWrite()) return absl::OkStatus();
  return contract::BadField(
      "on_cluster_loss",
      "FAIL_OVER_WHEN_FENCED: the agent's account may not write ConfigMap muster-lease, so that no "
      "pod would stop its program when its lease ends; give the account the rights of "
      "deploy/kubernetes/rights.yaml and restart the agent, or choose WAIT or FAIL_OVER_NOW");
}

void KubernetesBackend::AddLeases(agents::Capabilities* own) {
  if (!leases_.MayWrite()) return;
  own->fence_delay = LeaseFenceDelay();
  own->renew_leases = [this](absl::Duration remaining) { return leases_.Renew(remaining); };
}

}  // namespace muster::kubernetes
