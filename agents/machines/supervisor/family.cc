#include "agents/machines/supervisor/family.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agents/machines/clock_now.h"
#include "agents/machines/process_id.h"

namespace muster::machines {
namespace {

// The time between two rounds of killing, unless a child ends earlier.
constexpr int kRoundMs = 10;
// Only a process that hangs in the kernel outlives this.
constexpr int64_t kPatienceMs = 10'000;
constexpr uint64_t kKibibyte = 1024;

int64_t MicrosecondsOf(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

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
    rusage used = {};
    const pid_t pid = wait4(-1, &status, WNOHANG, &used);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    if (pid == 0) return true;
    usage_.user_cpu_us += MicrosecondsOf(used.ru_utime);
    usage_.system_cpu_us += MicrosecondsOf(used.ru_stime);
    usage_.max_rss_bytes =
        std::max(usage_.max_rss_bytes, static_cast<uint64_t>(used.ru_maxrss) * kKibibyte);
    if (const auto found = ends_.find(pid); found != ends_.end()) found->second = status;
  }
}

bool Family::KillAll(pid_t spared, const std::function<void()>& kill_others) {
  const pid_t self = getpid();
  const int64_t until_ms = SteadyMilliseconds() + kPatienceMs;
  while (SteadyMilliseconds() < until_ms) {
    if (!Reap()) return true;
    bool are_others = false;
    if (EndOf(spared).has_value()) spared = -1;
    for (const pid_t pid : ListProcesses()) {
      const std::optional<ProcessStat> stat = ReadProcessStat(pid);
      // A child keeps its pid until Reap, so this hits no one else.
      if (!stat.has_value() || stat->parent != self || pid == spared) continue;
      if (kill(pid, SIGKILL) != 0 && errno == EPERM) are_others = true;
    }
    if (are_others && kill_others) kill_others();
    pollfd fd = {signal_fd_, POLLIN, 0};
    poll(&fd, 1, kRoundMs);
  }
  return !Reap();
}

}  // namespace muster::machines
