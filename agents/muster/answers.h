// Reads the remote broker's answers to what runs need of it. Pure; any thread.
#ifndef MUSTER_AGENTS_MUSTER_ANSWERS_H_
#define MUSTER_AGENTS_MUSTER_ANSWERS_H_

#include <string>

#include "absl/status/status.h"
#include "agents/core/backend.h"

namespace muster::remote {

// Returns evidence from the remote broker, or from this agent; the agent's core adds the time.
v1::Evidence ByBroker(std::string detail);
v1::Evidence ByAgent(std::string detail);

agents::LaunchOutcome Launched(uint64_t job_id, std::string detail);
// Returns the outcome of a submission that failed. The caller handles ALREADY_EXISTS: the job
// exists.
agents::LaunchOutcome NotSubmitted(const absl::Status& error);
// Returns the outcome of a launch whose files could not be sent: nothing was submitted.
agents::LaunchOutcome NotBrought(const absl::Status& error);
// Returns the outcome of a job that cannot be expressed for another broker.
agents::LaunchOutcome NotExpressible(const absl::Status& error);

// Returns the proof that a job there gives, or why it gives none.
agents::FenceOutcome FenceBy(const v1::Job& job);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_ANSWERS_H_
