// Finds the requests of a run that its partition never grants.
#ifndef MUSTER_AGENTS_SLURM_POOL_LIMITS_H_
#define MUSTER_AGENTS_SLURM_POOL_LIMITS_H_

#include <vector>

#include "absl/status/status.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::slurm {

// INVALID_ARGUMENT for time_limit if none of the partitions that the job names (or the default one)
// allows that long: most clusters take such a job and let it wait for ever. OK if `pools` lacks one
// of them, which sbatch answers itself, and if the job names a QOS, which may lift the limit.
absl::Status CheckTimeLimit(const v1::JobSpec& spec, const std::vector<v1::Pool>& pools);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_POOL_LIMITS_H_
