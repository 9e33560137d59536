#include "agents/hosts/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "agents/hosts/host.h"
#include "agents/hosts/pidfd.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status CheckStrings(const SpawnRequest& request) {
  if (request.argv.empty() || request.argv.front().empty()) {
    return absl::InvalidArgumentError("a command needs a program as its first word");
  }
  for (const std::vector<std::string>* strings : {&request.argv, &request.env}) {
    for (const std::string& s : *strings) {
      if (s.find('\0') != std::string::npos) {
        return absl::InvalidArgumentError(
            fmt::format("an argument or variable of \"{}\" has a NUL byte; remove it",
                        request.argv.front().c_str()));
      }
    }
  }
  return absl::OkStatus();
}

// posix_spawn tells what went wrong, not in which step.
absl::Status SpawnError(const SpawnRequest& request, int error) {
  struct stat info;
  std::string what = fmt::format("cannot start \"{}\"", request.argv.front());
  if (const std::string& dir = request.working_directory; !dir.empty()) {
    const int stat_error = stat(dir.c_str(), &info) != 0 ? errno
                           : !S_ISDIR(info.st_mode)      ? ENOTDIR
                                                         : 0;
    if (stat_error != 0) {
      what += fmt::format(" in \"{}\"", dir);
      error = stat_error;
    }
  }
  return NotStartedError(error, fmt::format("{}: {}", what, ErrnoText(error)));
}

// The arguments of posix_spawn, freed at the end.
class SpawnSetup {
 public:
  explicit SpawnSetup(const SpawnRequest& request) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    if (!request.working_directory.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions_, request.working_directory.c_str());
    }
    posix_spawn_file_actions_adddup2(&actions_, request.stdin_fd, 0);
    posix_spawn_file_actions_adddup2(&actions_, request.stdout_fd, 1);
    posix_spawn_file_actions_adddup2(&actions_, request.stderr_fd, 2);
    // Libraries open descriptors without O_CLOEXEC, too.
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);

    sigset_t all;
    sigset_t blocked;
    sigfillset(&all);
    sigemptyset(&blocked);
    for (const int signal : request.blocked_signals) sigaddset(&blocked, signal);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                           (request.new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<Child> Spawn(const SpawnRequest& request) {
  if (absl::Status status = CheckStrings(request); !status.ok()) return status;
  const SpawnSetup setup(request);
  Child child;
  const int error =
      posix_spawnp(&child.pid, request.argv.front().c_str(), setup.actions(), setup.attributes(),
                   Pointers(request.argv).data(), Pointers(request.env).data());
  if (error != 0) return SpawnError(request, error);

  // The child cannot be reaped by anyone else, so that its pid is still its own.
  child.pidfd = Fd(PidfdOpen(child.pid));
  if (!child.pidfd.valid()) {
    const int open_error = errno;
    kill(-child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    return absl::InternalError(fmt::format("\"{}\" was started and killed at once: pidfd_open: {}",
                                           request.argv.front(), ErrnoText(open_error)));
  }
  return child;
}

}  // namespace muster::hosts
