// sbatch's --dependency where Muster waits, and not Slurm: jobs that no Slurm cluster has, or that
// are spread over clusters.
#ifndef MUSTER_CLIENTS_CLI_SLURM_MUSTER_WAITS_H_
#define MUSTER_CLIENTS_CLI_SLURM_MUSTER_WAITS_H_

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::cli {

// Puts depends_on in place of the spec's slurm.dependency, whose jobs are named by Muster's
// numbers. Jobs that have ended as it wants are left out. False, with the spec as it was: Muster
// cannot wait so, because the dependency asks for more than ends ("after", "+5", a task for a
// task), one of several conditions is enough ('?'), a job has ended otherwise than it should, or
// the jobs are too many. Errors are those of the broker.
absl::StatusOr<bool> LetMusterWait(client::Client& client, v1::JobSpec* spec);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_MUSTER_WAITS_H_
