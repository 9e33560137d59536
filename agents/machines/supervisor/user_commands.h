// Commands of muster-supervisor that the agent and supervisors have run as the user of a run, by
// muster-run-as: what is done with that user's files and processes has that user's rights alone.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_COMMANDS_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_COMMANDS_H_

#include <optional>
#include <string>
#include <vector>

namespace muster::machines {

// Carries out one of these, and returns the exit code; nothing if it is none of them.
// - remove-tree PATH MILLISECONDS: removes a file or directory; writes a TreeRemoval.
// - write-secret PATH: makes a file of mode 0600 of its standard input; ends with errno.
// - remove-secrets DIRECTORY: removes the files that write-secret has made there.
// - leave DIRECTORY: removes what Muster has made in a run's directory; ends with 0 if the user has
//   left nothing there.
// - kill-children PID: kills the children of a process.
// - signal-processes PID START_TICKS NUMBER first|all: signals the user's processes of a run; ends
//   with 0 if any got it.
// - kill-run RUN_KEY: kills the processes that have the run's key in their environment.
std::optional<int> UserCommand(const std::vector<std::string>& words);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_COMMANDS_H_
