// The volumes of the kubernetes section of a job spec.
#ifndef MUSTER_PROTO_CONTRACT_KUBERNETES_VOLUMES_H_
#define MUSTER_PROTO_CONTRACT_KUBERNETES_VOLUMES_H_

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Adds what is wrong with them, and with the size of the shared memory.
void CheckKubernetesVolumes(const v1::KubernetesOptions& options, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_KUBERNETES_VOLUMES_H_
