// Reads the remote broker's answers to what runs need of it. Pure; any thread.
#ifndef MUSTER_AGENTS_MUSTER_ANSWERS_H_
#define MUSTER_AGENTS_MUSTER_ANSWERS_H_

#include <string>

#include "absl/status/status.h"
#include "agents/core/backend.h"

namespace muster::remote {

// The remote broker, or this agent, as evidence; the agent's core dates it.
v1::Evidence ByBroker(std::string detail);
v1::Evidence ByAgent(std::string detail);

agents::LaunchOutcome Launched(uint64_t job_id, std::string detail);
// The outcome of a submission that failed. ALREADY_EXISTS is the caller's: the job is there.
agents::LaunchOutcome NotSubmitted(const absl::Status& error);
// The outcome of a launch whose files could not be sent: nothing was submitted.
agents::LaunchOutcome NotBrought(const absl::Status& error);
// The job cannot be expressed for another broker.
agents::LaunchOutcome NotExpressible(const absl::Status& error);

// The proof that a job there is, or why it is none.
agents::FenceOutcome FenceBy(const v1::Job& job);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_ANSWERS_H_
