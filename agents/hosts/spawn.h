// Starts a process without copying this one: a broker's agent may be large, and fork(2) copies its
// page tables.
#ifndef MUSTER_AGENTS_HOSTS_SPAWN_H_
#define MUSTER_AGENTS_HOSTS_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/hosts/fd.h"

namespace muster::hosts {

struct SpawnRequest {
  std::vector<std::string>
      argv;  // the program is looked up in this process's PATH if it has no '/'
  std::vector<std::string> env = {};   // "NAME=value", the whole environment
  std::string working_directory = {};  // empty: this process's own
  // The new process has these descriptors as 0, 1 and 2, and no others. Each is 3 or more
  // here.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // Starts a new session; otherwise a new process group. Either way its id is the process's.
  bool new_session = false;
  // Blocked in the new process from its first moment; all others are unblocked.
  std::vector<int> blocked_signals = {};
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;  // readable once the process has ended
};

// NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT or FAILED_PRECONDITION with the program or
// directory in the message; the process does not exist then. All signals are at their
// defaults in the new process.
absl::StatusOr<Child> Spawn(const SpawnRequest& request);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SPAWN_H_
