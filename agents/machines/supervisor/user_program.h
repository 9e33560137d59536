// Runs a program of the run as another user: the supervisor's side of muster-run-as, which is the
// child here, and the parent of the program. It tells over a socket what becomes of the program;
// the end of the socket, also by the supervisor's own end, is the order to kill all that the
// program has left.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_PROGRAM_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_PROGRAM_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "agents/hosts/fd.h"
#include "agents/machines/run_records.h"
#include "agents/machines/supervisor/child.h"

namespace muster::machines {

class UserProgram {
 public:
  explicit UserProgram(RunUser user) : user_(std::move(user)) {}

  // Has the child started as the user. False: errno says why not.
  bool Wrap(ChildRequest* child);
  // The child has the other end of the socket now.
  void LetGo() { theirs_.Close(); }

  // Is for poll(2); -1 if it says nothing more.
  int fd() const { return ours_.get(); }
  short events() const;
  // Sends and reads what can be without waiting.
  void Step();
  // Orders that all be killed. The program's end is told all the same.
  void OrderKill();

  // The program's process, once it runs.
  std::optional<pid_t> pid() const { return pid_; }
  // Returns its end, as of waitpid(2).
  std::optional<int> end() const { return end_; }
  // The reason that it was not started.
  struct Trouble {
    ExitRecord::Step step;
    int error;
    std::string path;
  };
  const std::optional<Trouble>& trouble() const { return trouble_; }

 private:
  void Wipe();
  void Send();
  void Take(const std::string& line);

  const RunUser user_;
  hosts::Fd ours_;
  hosts::Fd theirs_;
  std::string program_;
  std::string directory_;
  std::string unsent_;
  size_t sent_ = 0;  // of it
  std::string received_;
  std::optional<pid_t> pid_;
  std::optional<int> end_;
  std::optional<Trouble> trouble_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_USER_PROGRAM_H_
