// Wakes the followers of a log when it changes. Any thread.
#ifndef MUSTER_BROKER_LOGS_FOLLOWERS_H_
#define MUSTER_BROKER_LOGS_FOLLOWERS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "broker/logs/archive.h"
#include "sync/mutex.h"

namespace muster::logs {

class Followers {
 public:
  std::unique_ptr<Follow> Start(const LogId& log, std::function<void()> wake);
  // Wakes the followers of the log. Only each follower's own lock is held.
  void Wake(const LogId& log);
  size_t size() const { return size_.load(); }

 private:
  class Follower;
  class Registration;

  std::atomic<size_t> size_ = 0;  // read without the lock: most logs have no follower
  Mutex mutex_;
  std::multimap<LogId, std::shared_ptr<Follower>> followers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_FOLLOWERS_H_
