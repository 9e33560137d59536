// Makes Slurm's variables that a batch script finds on clusters of other kinds, because their
// values are known without Slurm.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_VARIABLES_H_
#define MUSTER_PROTO_CONTRACT_SLURM_VARIABLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Returns whether a batch script of one node finds the variable wherever it runs: SLURM_JOB_ID and
// SLURM_JOBID (Muster's number where Slurm gives none), SLURM_JOB_NAME, SLURM_CPUS_PER_TASK.
bool IsGivenEverywhere(std::string_view variable);

// Returns the variables that the job's batch script names, with their values; none for a job
// without a batch script. A variable that is not named is not given, because libraries take such
// variables for a sign that Slurm is there: mpirun asks it for its nodes.
std::map<std::string, std::string> NamedSlurmVariables(const v1::JobSpec& spec, uint64_t job_id);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_VARIABLES_H_
