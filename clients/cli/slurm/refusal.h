// Slurm's answer to the submission of a job, for muster sbatch, whose users expect it at once.
#ifndef MUSTER_CLIENTS_CLI_SLURM_REFUSAL_H_
#define MUSTER_CLIENTS_CLI_SLURM_REFUSAL_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

// The wait for a launch. One that takes longer brings files along, or its scheduler is slow.
inline constexpr absl::Duration kMaxLaunchWait = absl::Seconds(2);

// Waits until the job's cluster has taken or refused it. Returns the job if it was refused.
// Returns at once if no cluster has the job and none is about to get it, and nothing if the broker
// cannot be asked: the job is submitted all the same.
std::optional<v1::Job> AwaitRefusal(client::Client& client, uint64_t id, absl::Time deadline);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_REFUSAL_H_
