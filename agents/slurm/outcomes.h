// The outcomes of launches and look-ups, in the agent's terms.
#ifndef MUSTER_AGENTS_SLURM_OUTCOMES_H_
#define MUSTER_AGENTS_SLURM_OUTCOMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"

namespace muster::slurm {

// A file server or a controller that is away is back after seconds or minutes, and a look at the
// file server is cheap.
inline constexpr absl::Duration kRetryAfter = absl::Seconds(5);

// Observed now.
v1::Evidence MakeEvidence(v1::EvidenceSource source, std::string detail);

// The job itself is at fault: it is refused as CONFIG, in the words of the status.
agents::LaunchOutcome RefusedBecause(const absl::Status& status);
agents::LaunchOutcome RefusedFor(const v1::Failure& failure);
// It is not known whether Slurm has the run, for an earlier launch may have submitted it.
agents::LaunchOutcome Unclear(const absl::Status& status);
// Returns the outcome of a launch that submitted nothing. It is repeated after kRetryAfter, or at
// once if it had no turn at the CallGate, which it has waited for.
agents::LaunchOutcome Deferred(const absl::Status& why);

// UNAVAILABLE, in the words of an error that kept the files of a run from being written; what is
// the job's own fault, or OK, stays as it is.
absl::Status NotWritten(const absl::Status& status);

agents::LookupOutcome MakeLookup(agents::LookupOutcome::Kind kind, v1::EvidenceSource source,
                                 std::string detail);
agents::LookupOutcome CouldNotAsk(const absl::Status& status);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_OUTCOMES_H_
