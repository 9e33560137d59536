// One authenticated SSH connection to one host.
//
// Owner: one thread, that of SshLink. Nothing here blocks once the session is open.
#ifndef MUSTER_AGENTS_HOSTS_SSH_SESSION_H_
#define MUSTER_AGENTS_HOSTS_SSH_SESSION_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/host.h"
#include "agents/hosts/host_keys.h"
#include "agents/hosts/ssh_config.h"

typedef struct _LIBSSH2_SESSION LIBSSH2_SESSION;

namespace muster::hosts {

class SshSession {
 public:
  // Connects, verifies the host's key, and only then logs in. `stop_fd` becomes readable when
  // nobody wants the session any more: CANCELLED. UNAVAILABLE: the connection cannot be made or
  // does not last, and another host may be tried; FAILED_PRECONDITION, PERMISSION_DENIED: this
  // host was reached, and something needs the operator. `reached`: how far it came; null if nobody
  // asks.
  static absl::StatusOr<std::unique_ptr<SshSession>> Open(const SshConfig& config,
                                                          const HostKeys& host_keys,
                                                          const LoginHost& host, int stop_fd,
                                                          WayIn::Reached* reached = nullptr);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  LIBSSH2_SESSION* raw() const { return session_; }
  const LoginHost& host() const { return host_; }
  int fd() const { return fd_.get(); }

  // Returns whether a packet has been sent in part. libssh2 then wants the same call again before
  // any other that sends.
  bool is_sending() const;
  // Returns the events that poll(2) is to wait for.
  short poll_events() const;

  // Return the bytes from the host so far, and when the last of them came (by SteadyNow).
  uint64_t bytes_received() const { return bytes_received_; }
  absl::Duration last_received() const { return last_received_; }

  // UNAVAILABLE with libssh2's words about its last error.
  absl::Status Fault(std::string_view what) const;

  // Repeats a call of libssh2 while that says EAGAIN, and returns its answer. UNAVAILABLE "... not
  // within ..."; CANCELLED. Only while the session is being opened.
  absl::StatusOr<int> Repeat(std::string_view what, absl::Duration timeout,
                             const std::function<int()>& call);
  // Returns whether the connection itself has failed, whatever libssh2 calls it.
  bool is_broken() const { return is_broken_; }

 private:
  SshSession(LoginHost host, Fd fd, int stop_fd);
  static ssize_t Receive(int fd, void* buffer, size_t length, int flags, void** abstract);

  absl::Status Handshake(const SshConfig& config, const HostKeys& host_keys);
  absl::Status PreferKnownKeys(const HostKeys& host_keys);

  const LoginHost host_;
  Fd fd_;
  const int stop_fd_;
  LIBSSH2_SESSION* session_ = nullptr;
  uint64_t bytes_received_ = 0;
  absl::Duration last_received_;
  bool is_broken_ = false;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_SESSION_H_
