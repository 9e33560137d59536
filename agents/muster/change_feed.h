// Follows the changes of the jobs that are runs, on a thread of its own.
#ifndef MUSTER_AGENTS_MUSTER_CHANGE_FEED_H_
#define MUSTER_AGENTS_MUSTER_CHANGE_FEED_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "agents/muster/connection.h"
#include "agents/muster/remote.h"
#include "sync/mutex.h"

namespace muster::remote {

class ChangeFeed {
 public:
  struct Events {
    std::function<void(uint64_t job)> changed;
    std::function<void()> begun;  // a stream begins: something may have changed before
  };

  // `events` are called on the feed's thread. The connection outlives it.
  ChangeFeed(const RemoteConfig& config, Connection* connection, Events events);
  // Waits for the present stream, at most RemoteConfig::feed_length.
  ~ChangeFeed();

  // Begins to follow; once.
  void Start();
  // Returns whether the feed has reported all changes up to a moment ago.
  bool IsLive() const;

 private:
  void Loop();
  // Follows one stream to its end.
  void Follow();
  void Heard();
  // Logs why the stream ended, once until another one begins or ends otherwise.
  void TellLoss(const absl::Status& why);
  bool WaitOrStop(absl::Duration wait);

  const std::string filter_;
  const absl::Duration length_;
  Connection& connection_;
  const Events events_;

  mutable Mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Duration> heard_ ABSL_GUARDED_BY(mutex_);  // by hosts::SteadyNow
  // The feed's thread's own.
  std::optional<uint64_t> after_;  // where the next stream begins
  bool is_first_ = true;           // nothing of the present stream was heard
  std::string told_loss_;          // the error in the log; empty: the feed was heard since
  std::thread thread_;
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_CHANGE_FEED_H_
