// Reads a batch script's requests for its nodes: tasks, cores, memory and GPUs. Pure; of MapSbatch.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_SHAPE_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_SHAPE_H_

#include <string_view>

#include "clients/cpp/slurm/options.h"
#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

// Returns whether the option is one of those that MapShape reads.
bool IsOfShape(std::string_view option);

// Fills nodes and resources, by which the broker places the job, and the options of the slurm
// section that Slurm itself reads: all of them, as they were written. The resources of a job whose
// tasks Slurm spreads over nodes as it likes (several tasks without --nodes, a range of nodes,
// several nodes with --ntasks) are those of one task. Values that cannot be read are named in
// `errors`.
void MapShape(const Settings& given, v1::JobSpec* spec, contract::FieldErrors* errors);

// Adds "--time: "soon" (line 3) cannot be read; use minutes".
void AddUnreadable(const Setting& setting, std::string_view remedy, contract::FieldErrors* errors);

// Adds "--name=value" to the options that Slurm reads itself.
void AddExtra(std::string_view name, std::string_view value, v1::JobSpec* spec);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_SHAPE_H_
