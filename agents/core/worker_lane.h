// A few threads that work off blocking calls in order of arrival.
//
// Any thread may post. The queue is bounded by whoever posts: the agent core never has two calls
// for one run.
#ifndef MUSTER_AGENTS_CORE_WORKER_LANE_H_
#define MUSTER_AGENTS_CORE_WORKER_LANE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "sync/mutex.h"

namespace muster::agents {

class WorkerLane {
 public:
  explicit WorkerLane(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  // Drops what has not begun, and waits for what has.
  ~WorkerLane() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Post(std::function<void()> task) {
    {
      const MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    MutexLock lock(mutex_);
    while (true) {
      while (!stopping_ && tasks_.empty()) lock.Wait(changed_);
      if (stopping_) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      task();
      task = nullptr;  // what it holds goes before the lock comes
      lock.Lock();
    }
  }

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_WORKER_LANE_H_
