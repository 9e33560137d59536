// What is acceptable in the kubernetes section of a job spec. Whether the cluster has what it names
// is the cluster's business, and what of it may be asked for its operator's.
#ifndef MUSTER_PROTO_CONTRACT_KUBERNETES_OPTIONS_H_
#define MUSTER_PROTO_CONTRACT_KUBERNETES_OPTIONS_H_

#include <cstdint>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Lists that a person still writes.
inline constexpr int kMaxKubernetesItems = 20;
inline constexpr int kMaxKubernetesValues = 50;
inline constexpr int kMaxKubernetesVolumes = 32;
inline constexpr int kMaxKubernetesPullSecrets = 10;
inline constexpr int kMaxKubernetesCapabilities = 40;
// Longer, and a cancel seems to be lost.
inline constexpr int64_t kMaxKubernetesGraceSeconds = 3600;
// As long as a finished Job is kept for want of a broker.
inline constexpr int64_t kMaxKubernetesTimeToLiveSeconds = int64_t{7} * 24 * 3600;
inline constexpr uint32_t kMaxKubernetesWeight = 100;  // Kubernetes' own

// Adds what is wrong with the section, each with its field's path. Nothing if there is none.
void CheckKubernetesOptions(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_KUBERNETES_OPTIONS_H_
