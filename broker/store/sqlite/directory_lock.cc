#include "broker/store/sqlite/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "contract/errors.h"

namespace muster::store {
namespace {

std::string HolderOf(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  if (size <= 1) return "another process";
  return fmt::format("process {}", std::string_view(text, size - 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const std::string& directory) {
  const std::string path = directory + "/broker.lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return contract::Error(absl::StatusCode::kPermissionDenied, "STATE_DIRECTORY",
                           fmt::format("{}: could not open it: {}; the state directory must exist "
                                       "and belong to the broker's user",
                                       path, std::strerror(errno)));
  }
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "STATE_DIRECTORY_IN_USE",
                           fmt::format("{}: {} holds it; stop that broker, or choose another state "
                                       "directory",
                                       path, HolderOf(fd)));
  }
  // Only for the message above, so a failure to write it does not matter.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) return lock;
  return lock;
}

DirectoryLock::~DirectoryLock() { close(fd_); }

}  // namespace muster::store
