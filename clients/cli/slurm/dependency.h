// sbatch's --dependency, whose users know jobs by Muster's numbers.
#ifndef MUSTER_CLIENTS_CLI_SLURM_DEPENDENCY_H_
#define MUSTER_CLIENTS_CLI_SLURM_DEPENDENCY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::cli {

// The longest wait for the numbers that their cluster gives to jobs that were just submitted.
inline constexpr absl::Duration kMaxNumberWait = absl::Minutes(1);

// The longest wait for a cluster to take a job: with room somewhere it takes milliseconds, and
// without there is no telling.
inline constexpr absl::Duration kMaxPlaceWait = absl::Seconds(3);

// Puts "afterany" on the user's jobs of the same name that have not ended, by Muster's numbers, in
// place of "singleton" in the spec's slurm.dependency: Slurm knows Muster's jobs by other names.
// Errors are those of the broker.
absl::Status ExpandSingleton(client::Client& client, v1::JobSpec* spec);

// Puts Slurm's numbers in place of Muster's in the spec's slurm.dependency, and ties the job to the
// cluster that has those jobs. A job that has ended as the dependency wants it is left out,
// wherever it ran: Slurm may have forgotten it, or never knew it. If one of several conditions is
// enough ('?'), one that is fulfilled leaves no dependency, and one that never will be is left out
// unless it is the last one. An array has the number of Slurm's array if all its tasks are there,
// else the numbers of its tasks are named. Waits up to kMaxPlaceWait until a cluster has a job, and
// up to kMaxNumberWait until Slurm has given it a number. FAILED_PRECONDITION, with what to do
// instead: a job is held or got no cluster or number, is on a cluster of another kind, has ended
// otherwise than it should, or the jobs are on several clusters, or on others than the job names.
// A job that is not there is as with Slurm 24.11: NOT_FOUND for afterok and afternotok, and a note
// for the others, which are fulfilled. A retry is not followed: Slurm waits for the run that is
// there now. If Slurm cannot wait, but Muster can (LetMusterWait), Muster waits for all of the
// jobs: Slurm forgets those that ended long ago, so that it must not look at some of them later.
absl::Status TranslateDependency(client::Client& client, v1::JobSpec* spec,
                                 std::vector<std::string>* notes);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_DEPENDENCY_H_
