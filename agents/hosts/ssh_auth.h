// Logs in with a key's file or with the keys of ssh-agent, never with anything typed.
#ifndef MUSTER_AGENTS_HOSTS_SSH_AUTH_H_
#define MUSTER_AGENTS_HOSTS_SSH_AUTH_H_

#include "absl/status/status.h"
#include "agents/hosts/ssh_config.h"
#include "agents/hosts/ssh_session.h"

namespace muster::hosts {

// Logs in, on a session whose host key was verified. UNAVAILABLE: the connection was lost over it;
// PERMISSION_DENIED: the host takes none of our keys, with the methods it takes and the remedy;
// FAILED_PRECONDITION: the key's file, or the agent, cannot be used; CANCELLED.
absl::Status LogIn(const SshConfig& config, SshSession* session);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_AUTH_H_
