// The command rotate-secrets-key, and the places of a broker's secrets.
#ifndef MUSTER_BROKER_RPC_ROTATE_SECRETS_KEY_H_
#define MUSTER_BROKER_RPC_ROTATE_SECRETS_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "broker/secrets/secrets.h"

namespace muster::broker {

secrets::SecretsOptions SecretsOptionsOf(const std::string& state_dir);

// Seals all secrets with a new key, while no broker runs. Returns what to tell people.
absl::StatusOr<std::string> RotateSecretsKey(const std::string& state_dir);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_ROTATE_SECRETS_KEY_H_
