// A few threads that work off blocking calls in order of arrival.
//
// Any thread may post. The queue is bounded by whoever posts: the agent core never has two calls
// for one run.
#ifndef MUSTER_AGENTS_CORE_WORKER_LANE_H_
#define MUSTER_AGENTS_CORE_WORKER_LANE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace muster::agents {

class WorkerLane {
 public:
  explicit WorkerLane(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  // Drops what has not begun, and waits for what has.
  ~WorkerLane() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Post(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it holds goes before the lock comes
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_WORKER_LANE_H_
