// Runs the effects thread, which carries out what has been committed, in order, while the store
// thread commits the next changes. Half of the time of a group of submits goes into its replies.
#ifndef MUSTER_BROKER_ENGINE_CARRIER_H_
#define MUSTER_BROKER_ENGINE_CARRIER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>

#include "broker/core/core.h"
#include "sync/mutex.h"

namespace muster::broker {

class Carrier {
 public:
  // Called on the effects thread.
  using CarryOut = std::function<void(core::Output committed)>;

  // Commits whose effects wait while those of an earlier one are carried out. Each of them holds
  // its replies back, and may have megabytes.
  static constexpr size_t kMaxWaiting = 1;

  explicit Carrier(CarryOut carry_out);
  ~Carrier();

  void Start();
  // Runs on the store thread. It blocks while kMaxWaiting others wait, so that slow effects delay
  // the commits, the core and in the end the clients.
  void Post(core::Output committed);
  // Carries out what was posted, then ends the thread. No Post may follow.
  void Stop();

 private:
  void Run();

  const CarryOut carry_out_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<core::Output> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CARRIER_H_
