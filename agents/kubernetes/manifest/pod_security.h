// Sets the rights of a run's pods: the job's own wishes, within the operator's rules. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_SECURITY_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_SECURITY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::kubernetes {

// Objects without a member say nothing.
// NOLINTNEXTLINE(bugprone-exception-escape): Json's moves throw nothing, only seen deep inside it.
struct PodSecurity {
  Json pod = Json::object();        // securityContext of the pod
  Json container = Json::object();  // of each of its containers
  bool has_token = false;           // automountServiceAccountToken
};

// Returns whether pods meet the Pod Security standard "restricted" here: as the operator says, and
// else wherever projects are kept apart.
bool IsRestricted(const KubernetesConfig& config);

// Returns the securityContext of a container that meets it.
Json LeastContext();

// INVALID_ARGUMENT: settings contradict each other; names both.
absl::Status CheckPodSecurity(const KubernetesConfig& config);

// INVALID_ARGUMENT: the job asks for more than its pods may have here; names the field and who can
// allow it.
absl::StatusOr<PodSecurity> MakePodSecurity(const v1::JobSpec& spec,
                                            const KubernetesConfig& config);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_SECURITY_H_
