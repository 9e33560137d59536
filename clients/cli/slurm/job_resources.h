// The resources that a job asks for, in Slurm's words. Options of sbatch that the job takes to
// Slurm as they were written count, too. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_JOB_RESOURCES_H_
#define MUSTER_CLIENTS_CLI_SLURM_JOB_RESOURCES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "clients/cli/slurm/job_record.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::cli {

// The value of an option of sbatch ("ntasks") that goes to Slurm as it was written; empty: the job
// does not have it.
std::string_view OptionOf(const v1::JobSpec& spec, std::string_view name);

// Returns the number of nodes that the run has or, before it has some, the job asks for at least.
uint64_t NodeCount(const JobRecord& record);
// Returns the number of tasks that it asks for.
uint64_t TaskCount(const v1::JobSpec& spec);
// The sum over all nodes.
uint64_t TotalCpus(const v1::JobSpec& spec);
// The GPUs and other resources that it asks for on each node: "gres:gpu:h100:4", "N/A".
std::string GresText(const v1::JobSpec& spec);
// The memory on each node or, if it asks for so much, for each core: "16G", "512M"; "0" if the job
// did not ask.
std::string MemoryText(const v1::JobSpec& spec);
// The memory on all nodes together.
std::string TotalMemoryText(const JobRecord& record);
// The resources that it asks for on all nodes together: "cpu=8,gres/gpu=4,mem=32G,node=2" as sacct
// has it; squeue has GPUs at the end. Memory that it leaves to its cluster is not in it.
enum class TresOrder { kSacct, kSqueue };
std::string TresText(const JobRecord& record, TresOrder order);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_JOB_RESOURCES_H_
