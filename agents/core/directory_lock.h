// One process for each state directory.
#ifndef MUSTER_AGENTS_CORE_DIRECTORY_LOCK_H_
#define MUSTER_AGENTS_CORE_DIRECTORY_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace muster::agent {

// Holds an advisory lock on DIRECTORY/lock, which dies with the process.
class DirectoryLock {
 public:
  // Makes the directory, for its owner only, if it is missing. FAILED_PRECONDITION: another process
  // holds the lock. PERMISSION_DENIED: the directory cannot be made or written to.
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory);

  DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_DIRECTORY_LOCK_H_
