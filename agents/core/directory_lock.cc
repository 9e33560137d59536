#include "agents/core/directory_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/time/clock.h"

namespace muster::agent {
namespace {

// An agent that was killed in the middle of starting a process leaves a child that holds the lock
// until its exec. That takes milliseconds; a busy machine may need longer.
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(20);

bool LockWithin(int fd, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kBetweenTries);
  }
  return true;
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& directory) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(directory, error);
  // Specs and outputs of other people's jobs are in there.
  if (made) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  }
  if (error) {
    return absl::PermissionDeniedError(fmt::format(
        "cannot make the state directory {}: {}. Give the agent a --state-dir that it may write to",
        directory, error.message()));
  }
  const std::string path = directory + "/lock";
  DirectoryLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.fd_ < 0) {
    return absl::PermissionDeniedError(
        fmt::format("cannot open {}: {}. Give the agent a --state-dir that it may write to", path,
                    std::strerror(errno)));
  }
  if (!LockWithin(lock.fd_, kPatience)) {
    return absl::FailedPreconditionError(
        fmt::format("{} is locked: another agent uses this state directory. Stop it, or give this "
                    "one another --state-dir",
                    path));
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace muster::agent
