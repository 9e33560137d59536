// Keeps a second broker out of a state directory.
#ifndef MUSTER_BROKER_STORE_SQLITE_DIRECTORY_LOCK_H_
#define MUSTER_BROKER_STORE_SQLITE_DIRECTORY_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster::store {

// Held until destroyed, or until the process ends in any way.
class DirectoryLock {
 public:
  // FAILED_PRECONDITION: another process holds it; the message names its process id.
  static absl::StatusOr<std::unique_ptr<DirectoryLock>> Take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_DIRECTORY_LOCK_H_
