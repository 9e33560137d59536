// Checks the slurm.container section of a job spec.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_CONTAINER_H_
#define MUSTER_PROTO_CONTRACT_SLURM_CONTAINER_H_

#include <cstddef>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// A name of this length still is a directory's name (255 bytes) with the agent's and enroot's
// prefixes.
inline constexpr size_t kMaxContainerNameBytes = 63;
// A list that a person still writes.
inline constexpr int kMaxContainerEnv = 100;
// All of them together fit into one argument of srun many times over.
inline constexpr size_t kMaxVariableNameBytes = 255;

// Adds what is wrong with the section, each with its field's path. Nothing if there is none.
void CheckSlurmContainer(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_CONTAINER_H_
