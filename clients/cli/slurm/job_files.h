// The files of a batch script's output and input. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_JOB_FILES_H_
#define MUSTER_CLIENTS_CLI_SLURM_JOB_FILES_H_

#include <string>

#include "muster/v1/job.pb.h"

namespace muster::cli {

// The absolute pattern of --output, --error or --input, as squeue shows it:
// "/home/ada/slurm-%j.out". Empty: the job is no batch script. The job has its spec.
std::string OutputPattern(const v1::Job& job);
std::string ErrorPattern(const v1::Job& job);
std::string InputPattern(const v1::Job& job);

// The file that a run of Slurm's writes its output to. Empty: it cannot be known, or there is none.
std::string OutputPath(const v1::Job& job, const v1::Run& run);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_JOB_FILES_H_
