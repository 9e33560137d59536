#include "daemon/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/time/clock.h"
#include "contract/errors.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenTries = absl::Milliseconds(20);

std::string HolderOf(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  if (size <= 1) return "another process";
  return fmt::format("process {}", std::string_view(text, size - 1));
}

bool LockWithin(int fd, absl::Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(patience);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    absl::SleepFor(kBetweenTries);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const Options& options) {
  const int fd = open(options.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return contract::Error(absl::StatusCode::kPermissionDenied, "STATE_DIRECTORY",
                           fmt::format("{}: could not open it: {}; {}", options.path,
                                       std::strerror(errno), options.if_not_writable));
  }
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(fd));
  if (!LockWithin(fd, options.patience)) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "STATE_DIRECTORY_IN_USE",
        fmt::format("{}: {} holds it; {}", options.path, HolderOf(fd), options.if_held));
  }
  // The number is only for the message above, so a failure to write it does not matter.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) return lock;
  return lock;
}

DirectoryLock::~DirectoryLock() { close(fd_); }

}  // namespace muster
