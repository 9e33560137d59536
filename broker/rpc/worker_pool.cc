#include "broker/rpc/worker_pool.h"

#include <utility>

namespace muster::broker {

WorkerPool::WorkerPool(Options options) : options_(options) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() { Stop(); }

bool WorkerPool::PostCall(Task task) { return Post({std::move(task), true}); }

bool WorkerPool::PostStep(Task task) { return Post({std::move(task), false}); }

bool WorkerPool::Reserve() {
  std::lock_guard lock(mutex_);
  if (stopping_ || waiting_calls_ == options_.max_waiting_calls) return false;
  ++waiting_calls_;
  return true;
}

bool WorkerPool::PostReserved(Task task) { return Post({std::move(task), true}, true); }

void WorkerPool::Unreserve() {
  std::lock_guard lock(mutex_);
  --waiting_calls_;
}

bool WorkerPool::Post(Item item, bool is_reserved) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    const bool takes_place = item.is_call && !is_reserved;
    if (takes_place && waiting_calls_ == options_.max_waiting_calls) return false;
    if (takes_place) ++waiting_calls_;
    items_.push_back(std::move(item));
  }
  changed_.notify_one();
  return true;
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

void WorkerPool::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    if (item.is_call) --waiting_calls_;
    lock.unlock();
    item.task();
  }
}

}  // namespace muster::broker
