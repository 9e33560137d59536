// Wakes the thread of a webhook: there may be changes, or the broker stops. Any thread may ring;
// one waits.
#ifndef MUSTER_BROKER_NOTIFY_BELL_H_
#define MUSTER_BROKER_NOTIFY_BELL_H_

#include <atomic>
#include <condition_variable>

#include "absl/time/time.h"
#include "broker/app/watch_hub.h"
#include "sync/mutex.h"

namespace muster::notify {

class Bell final : public broker::Watcher {
 public:
  void Wake() override;
  // Ends all waits, from now on.
  void Stop();
  bool is_stopped() const { return is_stopped_; }

  // Waits for Wake or Stop, no longer than `patience`. A Wake since the last one ends it at once.
  void Await(absl::Duration patience);
  // Waits for Stop, no longer than `pause`.
  void Pause(absl::Duration pause);

 private:
  std::atomic<bool> is_stopped_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  bool is_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_BELL_H_
