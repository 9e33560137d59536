// muster-agent install-credentials: gives the cluster what a private registry asks for.
#ifndef MUSTER_AGENTS_APP_CREDENTIALS_COMMAND_H_
#define MUSTER_AGENTS_APP_CREDENTIALS_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "agents/app/agent_config.h"

namespace muster::agents {

// Reads the secret from standard input and writes it into enroot's credentials of the agent's user
// (Slurm), or into a Secret (Kubernetes); it is nowhere else. Returns what to tell the operator.
// FAILED_PRECONDITION: standard input is a terminal, or the cluster runs no images.
absl::StatusOr<std::string> InstallCredentials(const AgentConfig& config,
                                               const std::string& registry,
                                               const std::string& user);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_CREDENTIALS_COMMAND_H_
