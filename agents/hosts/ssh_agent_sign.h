// Signatures of ssh-agent that libssh2 1.10 does not ask for.
#ifndef MUSTER_AGENTS_HOSTS_SSH_AGENT_SIGN_H_
#define MUSTER_AGENTS_HOSTS_SSH_AGENT_SIGN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::hosts {

// Returns a signature with SHA-256, by the RSA key that the agent at the socket holds for this
// public key. UNAVAILABLE: it does not answer within the time; PERMISSION_DENIED: it does not sign
// with this key.
absl::StatusOr<std::string> SignWithAgent(const std::string& socket, std::string_view public_key,
                                          std::string_view data, absl::Duration timeout);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_AGENT_SIGN_H_
