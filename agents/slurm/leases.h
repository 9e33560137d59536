// Serves leases of runs on Slurm: what batch.sh is told of them, and how long a process can outlive
// its lease. agents/core/lease_file.h has the file that they are read from. Pure.
#ifndef MUSTER_AGENTS_SLURM_LEASES_H_
#define MUSTER_AGENTS_SLURM_LEASES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::slurm {

// The time between TERM and KILL for a program whose lease has ended: Slurm's own default for
// KillWait, so that a program has as long as after a cancel.
inline constexpr absl::Duration kLeaseGrace = absl::Seconds(30);

// Returns the longest time that a process of a run can live after the lease has ended, by the clock
// of the agent.
absl::Duration LeaseFenceDelay();

// Returns the file specs/lease for batch.sh: the time between two looks, the bound of the clocks'
// difference and the grace, in milliseconds.
std::string LeaseTermsFile();

// INVALID_ARGUMENT: the job wants a lease that nodes of Slurm's could not keep.
absl::Status CheckKeepsLease(const v1::JobSpec& spec);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_LEASES_H_
