// Jobs as squeue --json has them. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SQUEUE_JSON_H_
#define MUSTER_CLIENTS_CLI_SLURM_SQUEUE_JSON_H_

#include <span>
#include <string>

#include "absl/time/time.h"
#include "clients/cli/slurm/job_record.h"

namespace muster::cli {

// {"meta": ..., "errors": [], "jobs": [...]}, the fields by the names and in the forms of Slurm
// 22.05. A field that Muster knows nothing of is left out.
std::string SqueueJson(std::span<const JobRecord> records, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SQUEUE_JSON_H_
