// Derives the state of a run from its records. Pure.
#ifndef MUSTER_AGENTS_MACHINES_VERDICT_H_
#define MUSTER_AGENTS_MACHINES_VERDICT_H_

#include <string>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/machines/run_records.h"
#include "agents/machines/scheduling/request.h"
#include "contract/failures.h"

namespace muster::machines {

// The source of a fact, and its run.
struct Witness {
  std::string run_key;
  std::string hostname;
  absl::Time now;
};

// The failure is retriable if it is the cluster's doing.
v1::Failure MakeFailure(v1::FailureCode code, v1::FailureClass failure_class,
                        contract::FailureParts parts = {});
// Returns the failure of a job that the cluster can never run.
v1::Failure MisfitFailure(const Misfit& misfit);
// Its remedy, as the lines of checks and logs have it.
std::string RemedyOf(const Misfit& misfit);

// The board says why it waits.
agents::Observation PendingVerdict(const Witness& witness);
// A supervisor has it; the command has not started.
agents::Observation StartingVerdict(const Witness& witness, pid_t supervisor);
agents::Observation RunningVerdict(const Witness& witness, const Started& started);
agents::Observation EndVerdict(const Witness& witness, const ExitRecord& exit);
// It has a claim and no exit record, and its supervisor is gone; `detail` says how that was seen.
agents::Observation VanishedVerdict(const Witness& witness, const std::string& detail);
// It could not be started, and has no processes.
agents::Observation NotStartedVerdict(const Witness& witness, const v1::Failure& failure);
// The backend should have it, and there is no trace of it.
agents::Observation LostVerdict(const Witness& witness, const std::string& directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_VERDICT_H_
