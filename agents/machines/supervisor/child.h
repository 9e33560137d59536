// Starting one program of the run.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_CHILD_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "agents/machines/run_records.h"

namespace muster::machines {

// The descriptor of the child behind the standard ones.
inline constexpr int kExtraFd = 3;

struct ChildRequest {
  std::vector<std::string> words;        // the program and its arguments
  std::vector<std::string> environment;  // all of it; its PATH finds the program
  std::string working_directory;
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> group_fds = {};  // entrances of the control groups that it belongs to
  int extra_fd = -1;                // above kExtraFd, which it has in the child; -1: none
};

struct ChildStart {
  pid_t pid = -1;
  // The error, if there is no child, as errno, the call that failed, and its file. 0: there is a
  // child.
  int error = 0;
  ExitRecord::Step step = ExitRecord::Step::kProgram;
  std::string path;
};

// Starts the program as the leader of its own session and process group, with no signal blocked; it
// dies with this process.
ChildStart StartChild(const ChildRequest& request);

// Finds the file that a shell would run for this word: itself if it has a '/', else the first
// program of that name in `path` (absolute directories with colons). 0 and *found, or errno.
int FindProgram(const std::string& word, const std::string& path, std::string* found);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_CHILD_H_
