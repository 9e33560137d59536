// The settings of the SSH connection.
#ifndef MUSTER_AGENTS_HOSTS_SSH_CONFIG_H_
#define MUSTER_AGENTS_HOSTS_SSH_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::hosts {

struct LoginHost {
  std::string name;  // a DNS name or an address
  uint16_t port = 22;

  // "name:port", an IPv6 address in brackets.
  std::string ToString() const;
};

struct SshConfig {
  // ---- affects behaviour

  // Tried in this order; the next one only if a connection cannot be made. At least 1, at most 16.
  std::vector<LoginHost> hosts;
  std::string user;
  // A private key without passphrase, readable for its owner only. Empty: the agent at
  // agent_socket.
  std::string key_file;
  // ssh-agent's socket. Default: SSH_AUTH_SOCK.
  std::string agent_socket;
  // The file of known hosts, in the form of ssh(1). Empty: only host_keys count.
  std::string known_hosts_file;
  // Keys that the hosts may have whatever known_hosts_file says, each "TYPE BASE64" or
  // "SHA256:FINGERPRINT".
  std::vector<std::string> host_keys;

  // A TCP connection to one host. Login nodes are near or down.
  absl::Duration connect_timeout = absl::Seconds(10);
  // Banner and key exchange take seconds on a busy login node.
  absl::Duration handshake_timeout = absl::Seconds(20);
  // All keys of an agent together.
  absl::Duration auth_timeout = absl::Seconds(20);
  // Opening a channel and starting a shell on it.
  absl::Duration channel_timeout = absl::Seconds(30);
  // Any one file operation, a read of 64 MiB included.
  absl::Duration file_timeout = absl::Seconds(120);
  // A host that says nothing for this long is asked for a sign of life.
  absl::Duration keepalive_interval = absl::Seconds(15);
  // It is given up when it has said nothing for this many intervals.
  int keepalive_limit = 3;
  // The pause after a failure to connect to any host. It doubles from the one to the other.
  absl::Duration min_backoff = absl::Milliseconds(500);
  absl::Duration max_backoff = absl::Seconds(30);

  // ---- affects performance

  // Commands at the same time. sshd allows 10 sessions on a connection by default (MaxSessions);
  // two are left for killing what is over its time and for signs of life. A host that allows fewer
  // is adapted to.
  int max_channels = 8;
};

inline constexpr size_t kMaxLoginHosts = 16;

// Reads "HOST", "HOST:PORT", "[V6]" or "[V6]:PORT".
absl::StatusOr<LoginHost> ParseLoginHost(std::string_view text);
// Reads "HOST[:PORT],..." in order.
absl::StatusOr<std::vector<LoginHost>> ParseLoginHosts(std::string_view text);
// INVALID_ARGUMENT names the setting and the remedy.
absl::Status CheckSshConfig(const SshConfig& config);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_CONFIG_H_
