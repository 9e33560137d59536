// The files that a batch script names for its output, on clusters that do not write them.
//
// Pure; any thread.
#ifndef MUSTER_AGENTS_CORE_BATCH_OUTPUT_H_
#define MUSTER_AGENTS_CORE_BATCH_OUTPUT_H_

#include <optional>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::agents {

// A warning that names them, for the plan of a cluster that is not Slurm: who named a file looks
// there first. Nothing: the job is no batch script, or names none.
std::optional<v1::ClusterCheck> WarnOfBatchOutput(const v1::JobSpec& spec);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BATCH_OUTPUT_H_
