#include "agents/machines/supervisor/family.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agents/machines/process_id.h"

namespace muster::machines {
namespace {

// Between two rounds of killing, unless a child ends earlier.
constexpr int kRoundMs = 10;
// 10 s in all: only a process that hangs in the kernel outlives this many rounds.
constexpr int kMaxRounds = 1000;

}  // namespace

Family::Family(int signal_fd) : signal_fd_(signal_fd) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void Family::Watch(pid_t pid) { ends_[pid] = std::nullopt; }

std::optional<int> Family::EndOf(pid_t pid) const {
  const auto found = ends_.find(pid);
  return found == ends_.end() ? std::nullopt : found->second;
}

bool Family::Reap() {
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    if (pid == 0) return true;
    if (const auto found = ends_.find(pid); found != ends_.end()) found->second = status;
  }
}

bool Family::KillAll() {
  const pid_t self = getpid();
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!Reap()) return true;
    for (const pid_t pid : ListProcesses()) {
      const std::optional<ProcessStat> stat = ReadProcessStat(pid);
      // A child keeps its pid until Reap, so this hits no one else.
      if (stat.has_value() && stat->parent == self) kill(pid, SIGKILL);
    }
    pollfd fd = {signal_fd_, POLLIN, 0};
    poll(&fd, 1, kRoundMs);
  }
  return !Reap();
}

}  // namespace muster::machines
