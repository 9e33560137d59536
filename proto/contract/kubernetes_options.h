// Checks the kubernetes section of a job spec. The cluster decides whether it has what the section
// names; its operator decides what of it jobs may ask for.
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
// A finished Job is kept as long as this if no broker can be reached.
inline constexpr int64_t kMaxKubernetesTimeToLiveSeconds = int64_t{7} * 24 * 3600;
inline constexpr uint32_t kMaxKubernetesWeight = 100;  // Kubernetes' own

// Adds what is wrong with the section, each with its field's path. Nothing if there is none.
void CheckKubernetesOptions(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_KUBERNETES_OPTIONS_H_
