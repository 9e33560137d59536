// The pods of a run. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_TEMPLATE_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_TEMPLATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/manifest/pod_volumes.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// Returns the spec of a pod. `assignment` is that of OnStorage. INVALID_ARGUMENT names the field
// and the remedy.
absl::StatusOr<Json> MakePodSpec(const agent::v1::Assignment& assignment,
                                 const KubernetesConfig& config, PodVolumes volumes);

// Returns the variable by which a container's script knows the seal of its records (end_record.h).
Json MakeSealVariable();

// Returns the affinity that says where the pods may run: the order of preference is the scheduler's
// business. An empty object: anywhere.
Json MakeAffinity(const agent::v1::Assignment& assignment, const KubernetesConfig& config);
// Adds one for the taint by the name of the GPU resource, for pods that ask for it.
Json MakeTolerations(const agent::v1::Assignment& assignment, const KubernetesConfig& config);

// Names the resource that a job's GPUs are, and the type that a node's label must have; "" means
// any. A type that is the name of one of the operator's resources, or what is behind its '/',
// stands for it; other types are those of the first one. Case does not matter. If the configuration
// names no resource, it is "gpu", which no node has.
struct GpuChoice {
  std::string resource;
  std::string type;
  uint64_t count = 0;  // 0: the job has none
};
GpuChoice ChooseGpus(const v1::Resources& resources, const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_TEMPLATE_H_
