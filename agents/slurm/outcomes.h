// The outcomes of launches and look-ups, in the agent's terms.
#ifndef MUSTER_AGENTS_SLURM_OUTCOMES_H_
#define MUSTER_AGENTS_SLURM_OUTCOMES_H_

#include <string>

#include "absl/status/status.h"
#include "agents/core/backend.h"

namespace muster::slurm {

// Observed now.
v1::Evidence MakeEvidence(v1::EvidenceSource source, std::string detail);

// The job itself is at fault: it is refused as CONFIG, in the words of the status.
agents::LaunchOutcome RefusedBecause(const absl::Status& status);
agents::LaunchOutcome RefusedFor(const v1::Failure& failure);
agents::LaunchOutcome Unclear(std::string detail);
// kNotSent if the question had no turn at the CallGate.
agents::LaunchOutcome Unclear(const absl::Status& status);

agents::LookupOutcome MakeLookup(agents::LookupOutcome::Kind kind, v1::EvidenceSource source,
                                 std::string detail);
agents::LookupOutcome CouldNotAsk(const absl::Status& status);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_OUTCOMES_H_
