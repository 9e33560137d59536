// Runs on a Kubernetes cluster, each as a Job, through its API server alone: the agent may live in
// the cluster or outside.
#ifndef MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_
#define MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/core/run_files.h"
#include "agents/kubernetes/settings/kubernetes_config.h"

namespace muster::kubernetes {

// `state_dir` is the agent's own directory, for the runs' outputs. An error says which setting is
// wrong and what to do. Does not ask the server; Probe does.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateKubernetesBackend(
    const KubernetesConfig& config, const std::string& state_dir);

// Opens a results directory, a path as containers see it, to be sent to people.
// FAILED_PRECONDITION, RUN_HAS_NO_FILES: the agent does not see it.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenResults(const KubernetesConfig& config,
                                                              const std::string& directory);

// Returns where the agent reads a results directory, a path as containers see it; empty if it does
// not see it, or a link that a pod has put there leads out of the storage root.
std::string ReadableResults(const KubernetesConfig& config, const std::string& directory);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_KUBERNETES_H_
