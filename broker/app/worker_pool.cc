#include "broker/app/worker_pool.h"

#include <utility>

namespace muster::broker {

WorkerPool::WorkerPool(Options options) : options_(options) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() { Stop(); }

bool WorkerPool::PostCall(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || waiting_calls_ == options_.max_waiting_calls) return false;
    ++waiting_calls_;
    calls_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool WorkerPool::PostStep(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    steps_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool WorkerPool::Reserve() {
  std::lock_guard lock(mutex_);
  if (stopping_ || waiting_calls_ == options_.max_waiting_calls) return false;
  ++waiting_calls_;
  return true;
}

bool WorkerPool::PostReserved(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    calls_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::Unreserve() {
  std::lock_guard lock(mutex_);
  --waiting_calls_;
}

void WorkerPool::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

WorkerPool::Task WorkerPool::TakeNext() {
  const bool takes_step = !steps_.empty() && (calls_.empty() || calls_in_a_row_ == kCallsPerStep);
  std::deque<Task>& from = takes_step ? steps_ : calls_;
  Task task = std::move(from.front());
  from.pop_front();
  calls_in_a_row_ = takes_step || steps_.empty() ? 0 : calls_in_a_row_ + 1;
  if (!takes_step) --waiting_calls_;
  return task;
}

void WorkerPool::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !calls_.empty() || !steps_.empty(); });
    if (calls_.empty() && steps_.empty()) return;
    const Task task = TakeNext();
    lock.unlock();
    task();
  }
}

}  // namespace muster::broker
