// Provides a mutex that clang's thread-safety analysis understands, over the standard library's.
// Members that are ABSL_GUARDED_BY one can be used only while it is held, or tests/lint fails.
// absl::Mutex has the same annotations, but the release of Debian 12 measures its waits by the wall
// clock, and a change of the time of day must not lengthen or shorten a wait.
//
// Analysis: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#ifndef MUSTER_PROTO_SYNC_MUTEX_H_
#define MUSTER_PROTO_SYNC_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace muster {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex for a scope, or for less. Waits may end without a reason: wait in a loop.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

  // Waits for a notification, with the mutex not held meanwhile.
  void Wait(std::condition_variable& changed) { changed.wait(lock_); }
  // False: `due` has come.
  bool WaitUntil(std::condition_variable& changed, std::chrono::steady_clock::time_point due) {
    return changed.wait_until(lock_, due) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace muster

#endif  // MUSTER_PROTO_SYNC_MUTEX_H_
