// Fetches the secrets of a run when it is launched, for that launch alone. Any thread.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_SECRETS_H_
#define MUSTER_AGENTS_CORE_LAUNCH_SECRETS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "muster/agent/v1/secret_link.pb.h"

namespace muster::agents {

// Asks the broker. Waits for its answer, and no longer than a launch may.
using FetchSecrets =
    std::function<absl::StatusOr<agent::v1::FetchRunSecretsResponse>(const std::string& run_key)>;

// Returns the assignment itself, or a copy that has the values of its secrets.
absl::StatusOr<std::shared_ptr<const agent::v1::Assignment>> WithSecrets(
    std::shared_ptr<const agent::v1::Assignment> assignment, const FetchSecrets& fetch);

// Returns the outcome of a launch whose secrets are not there: refused, if the broker says that it
// will not tell them, else deferred.
LaunchOutcome NotLaunchedWithout(const absl::Status& why);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LAUNCH_SECRETS_H_
