// Provides a mutex that readers share and a writer has alone, for clang's thread-safety analysis:
// see mutex.h. Nobody waits on it for a condition.
#ifndef MUSTER_PROTO_SYNC_SHARED_MUTEX_H_
#define MUSTER_PROTO_SYNC_SHARED_MUTEX_H_

#include <mutex>
#include <shared_mutex>

#include "absl/base/thread_annotations.h"

namespace muster {

class ABSL_LOCKABLE SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

 private:
  friend class ReaderLock;
  friend class WriterLock;
  std::shared_mutex mutex_;
};

// Holds a mutex for a scope, beside other readers.
class ABSL_SCOPED_LOCKABLE ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~ReaderLock() ABSL_UNLOCK_FUNCTION() = default;
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  const std::shared_lock<std::shared_mutex> lock_;
};

// Holds a mutex for a scope, alone.
class ABSL_SCOPED_LOCKABLE WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : lock_(mutex.mutex_) {}
  ~WriterLock() ABSL_UNLOCK_FUNCTION() = default;
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  const std::unique_lock<std::shared_mutex> lock_;
};

}  // namespace muster

#endif  // MUSTER_PROTO_SYNC_SHARED_MUTEX_H_
