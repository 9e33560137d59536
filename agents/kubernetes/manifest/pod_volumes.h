// Makes the files that a run's pod sees: its own, the cluster's storage, and the volumes that it
// names. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_VOLUMES_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_VOLUMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// Returns the assignment with an image, and with paths of this cluster in place of URIs, as
// agents::OnCluster makes it: its mounts are the job's own, then those of inputs, then the results.
// INVALID_ARGUMENT names the field and the remedy.
absl::StatusOr<agent::v1::Assignment> OnStorage(const agent::v1::Assignment& assignment,
                                                const KubernetesConfig& config);

// NOLINTNEXTLINE(bugprone-exception-escape): Json's moves throw nothing, only seen deep inside it.
struct PodVolumes {
  Json volumes = Json::array();
  // The mounts of the container that runs setup and command.
  Json mounts = Json::array();
  // The mounts of the container that looks at the storage before, with its arguments; empty if
  // there is nothing to look at.
  Json storage_mounts = Json::array();
  std::string storage_words;
};

// `original` is the assignment as the job has it, `resolved` that of OnStorage. INVALID_ARGUMENT: a
// path that no storage root has, a volume that the operator does not allow, two at one place.
absl::StatusOr<PodVolumes> MakeVolumes(const agent::v1::Assignment& original,
                                       const agent::v1::Assignment& resolved,
                                       const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_VOLUMES_H_
