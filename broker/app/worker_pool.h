// Runs work that waits for the disk on a few threads, so that gRPC's threads never do.
//
// Any thread may post. Two kinds of work share the threads, each in the order of arrival: calls,
// which are refused when too many wait, and steps of streams. A stream has at most one step here,
// so the number of streams bounds the steps. Calls go first, so that many streams do not delay
// them, and find threads that run no steps (kept_for_calls); one step follows kCallsPerStep calls,
// so that many calls do not stop the streams.
#ifndef MUSTER_BROKER_APP_WORKER_POOL_H_
#define MUSTER_BROKER_APP_WORKER_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "broker/app/readers.h"
#include "sync/mutex.h"

namespace muster::broker {

class WorkerPool : public Readers {
 public:
  // Applies while both kinds wait. A step takes about as long as a few calls, so that calls get
  // most of the time and streams are still served.
  static constexpr int kCallsPerStep = 8;

  struct Options {
    int threads = 2;         // SQLite and the page cache gain little from more on a small machine
    int kept_for_calls = 0;  // so many of the threads run no steps; fewer than there are
    size_t max_waiting_calls = 1024;  // each takes about 20 us to 10 ms
  };

  explicit WorkerPool(Options options);
  ~WorkerPool() override;

  bool PostCall(Task task) override;
  bool Reserve() override;
  bool PostReserved(Task task) override;
  void Unreserve() override;
  absl::Status Refusal() const override;

  // False: the pool has stopped.
  bool PostStep(Task task);

  // Calls that wait, with reserved places, and the most that may.
  size_t waiting_calls() const;
  size_t max_waiting_calls() const { return options_.max_waiting_calls; }

  // Runs the tasks that wait, then ends the threads.
  void Stop();

 private:
  struct Taken {
    Task task;
    bool is_step = false;
  };
  // Call TakeNext while MayTake.
  bool MayRunStep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !calls_.empty() || MayRunStep();
  }
  Taken TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const Options options_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> calls_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task> steps_ ABSL_GUARDED_BY(mutex_);
  int running_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  int calls_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;  // taken since the last step, while steps waited
  size_t waiting_calls_ ABSL_GUARDED_BY(mutex_) = 0;  // includes reserved places
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_WORKER_POOL_H_
