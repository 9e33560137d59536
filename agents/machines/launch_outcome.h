// Makes the outcomes of launches on machines, with the agent's own word as evidence.
#ifndef MUSTER_AGENTS_MACHINES_LAUNCH_OUTCOME_H_
#define MUSTER_AGENTS_MACHINES_LAUNCH_OUTCOME_H_

#include <string>

#include "absl/status/status.h"
#include "agents/core/backend.h"
#include "agents/machines/scheduling/request.h"
#include "contract/failures.h"

namespace muster::machines {

// Returns evidence of the present moment.
v1::Evidence AgentEvidence(const std::string& detail);
agents::LaunchOutcome Refused(v1::FailureCode code, v1::FailureClass failure_class,
                              const contract::FailureParts& parts);
// Refuses a job that the cluster can never run.
agents::LaunchOutcome Refused(const Misfit& misfit);
// The job waits: a later launch may fit.
agents::LaunchOutcome Deferred(const Misfit& misfit);
// Says `code` if the job asks for the impossible; if not, the agent could not do it.
agents::LaunchOutcome RefusedBecause(v1::FailureCode code, const absl::Status& status);
// Nobody knows whether the run was launched before: `status` is why.
agents::LaunchOutcome UnclearBecause(const absl::Status& status);
agents::LaunchOutcome LaunchedAs(const std::string& detail);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_LAUNCH_OUTCOME_H_
