// A TCP connection within a time, given up when its owner stops.
#ifndef MUSTER_AGENTS_HOSTS_TCP_CONNECT_H_
#define MUSTER_AGENTS_HOSTS_TCP_CONNECT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/ssh_config.h"

namespace muster::hosts {

// Waits until the descriptor has one of `events` (those of poll). DEADLINE_EXCEEDED: not until the
// time (of SteadyNow); CANCELLED: `stop_fd` became readable.
absl::Status WaitFor(int fd, short events, absl::Duration until, int stop_fd);

// Tries each address of the name in turn. The socket does not block. UNAVAILABLE or
// DEADLINE_EXCEEDED: the connection cannot be made, and another host may be tried; CANCELLED:
// `stop_fd` became readable. The name's look-up has the resolver's own time-outs.
absl::StatusOr<Fd> TcpConnect(const LoginHost& host, absl::Duration timeout, int stop_fd);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_TCP_CONNECT_H_
