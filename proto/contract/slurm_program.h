// Says how a job's command starts on Slurm only: as a batch script, and with a time-out of its own.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_PROGRAM_H_
#define MUSTER_PROTO_CONTRACT_SLURM_PROGRAM_H_

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Adds what is wrong with slurm.timeout and slurm.batch_script.
void CheckSlurmProgram(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_PROGRAM_H_
