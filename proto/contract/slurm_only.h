// Finds the fields that keep a job from running anywhere but on Slurm.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_ONLY_H_
#define MUSTER_PROTO_CONTRACT_SLURM_ONLY_H_

#include <string>

#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Returns the reason that only a Slurm cluster can take the job, in words that go on from
// "because"; empty means any kind of cluster may. A slurm section does, unless it says only that
// the command is a batch script, the script is for one node and one task, reads no input, and names
// nothing that Slurm alone gives to it (srun, SLURM_NODELIST and the like, outside of comments;
// IsGivenEverywhere has what any kind gives, and a task of a job array has SLURM_ARRAY_* anywhere).
std::string WhySlurmOnly(const v1::JobSpec& spec);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_ONLY_H_
