// One process for each state directory.
#ifndef MUSTER_PROTO_DAEMON_DIRECTORY_LOCK_H_
#define MUSTER_PROTO_DAEMON_DIRECTORY_LOCK_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// The lock is held until destroyed, or until the process ends in any way.
class DirectoryLock {
 public:
  struct Options {
    std::string path;  // of the lock's file, which is made if it is missing
    // The wait for a process that holds it.
    absl::Duration patience = absl::ZeroDuration();
    // The advice of the errors, in the daemon's own words.
    std::string_view if_held;
    std::string_view if_not_writable;
  };

  // FAILED_PRECONDITION: another process holds it; the message names its process id.
  // PERMISSION_DENIED: the file cannot be made or opened.
  static absl::StatusOr<std::unique_ptr<DirectoryLock>> Take(const Options& options);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_DIRECTORY_LOCK_H_
