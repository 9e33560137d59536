// Holds all processes of the run: the children of this process, which as their subreaper inherits
// every orphan among them.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_FAMILY_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_FAMILY_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace muster::machines {

class Family {
 public:
  // Makes this process the subreaper. SIGCHLD is blocked and arrives at `signal_fd`.
  explicit Family(int signal_fd);

  // Names the child whose end matters.
  void Watch(pid_t pid);
  // Returns the end of that child, in the form of waitpid(2); nothing while it runs.
  std::optional<int> EndOf(pid_t pid) const;

  // The usage of the children reaped since the start, or since the last StartCounting, with that of
  // the children that they have reaped themselves.
  struct Usage {
    int64_t user_cpu_us = 0;
    int64_t system_cpu_us = 0;
    uint64_t max_rss_bytes = 0;  // the most that one process had
  };
  void StartCounting() { usage_ = {}; }
  const Usage& usage() const { return usage_; }

  // Reaps every child that has ended. Returns whether there are others.
  bool Reap();
  // Kills what is left, and what that leaves behind, until nothing is left. False: something would
  // not die in time. `spared` is the child that is left alone, as it ends when all others have; -1
  // if none. `kill_others`: kills what this process may not; null if there is no such thing.
  bool KillAll(pid_t spared = -1, const std::function<void()>& kill_others = nullptr);

 private:
  int signal_fd_;
  Usage usage_;
  std::map<pid_t, std::optional<int>> ends_;  // of those watched, a few for each run
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_FAMILY_H_
