// Reads the account that pulls from a container registry: the part that is the same however a
// cluster keeps the secret.
#ifndef MUSTER_AGENTS_CORE_REGISTRY_ACCOUNT_H_
#define MUSTER_AGENTS_CORE_REGISTRY_ACCOUNT_H_

#include <string>

#include "absl/status/status.h"

namespace muster::agents {

// Writes the registry as images name it, and fills in the user of a registry that takes only one.
// INVALID_ARGUMENT: it is no registry's name, or the registry takes another user.
absl::Status CompleteRegistryAccount(std::string* registry, std::string* user);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_REGISTRY_ACCOUNT_H_
