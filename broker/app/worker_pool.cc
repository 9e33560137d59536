#include "broker/app/worker_pool.h"

#include <utility>

#include "contract/errors.h"
#include "sync/mutex.h"

namespace muster::broker {

WorkerPool::WorkerPool(Options options) : options_(options) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() { Stop(); }

bool WorkerPool::PostCall(Task task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_ || waiting_calls_ == options_.max_waiting_calls) return false;
    ++waiting_calls_;
    calls_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

size_t WorkerPool::waiting_calls() const {
  const MutexLock lock(mutex_);
  return waiting_calls_;
}

bool WorkerPool::PostStep(Task task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    steps_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool WorkerPool::Reserve() {
  const MutexLock lock(mutex_);
  if (stopping_ || waiting_calls_ == options_.max_waiting_calls) return false;
  ++waiting_calls_;
  return true;
}

bool WorkerPool::PostReserved(Task task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    calls_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::Unreserve() {
  const MutexLock lock(mutex_);
  --waiting_calls_;
}

absl::Status WorkerPool::Refusal() const {
  const MutexLock lock(mutex_);
  return stopping_ ? contract::ShuttingDown() : ReadersBusy();
}

void WorkerPool::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool WorkerPool::MayRunStep() const {
  return !steps_.empty() && running_steps_ < options_.threads - options_.kept_for_calls;
}

WorkerPool::Taken WorkerPool::TakeNext() {
  const bool takes_step = MayRunStep() && (calls_.empty() || calls_in_a_row_ >= kCallsPerStep);
  std::deque<Task>& from = takes_step ? steps_ : calls_;
  Task task = std::move(from.front());
  from.pop_front();
  calls_in_a_row_ = takes_step || steps_.empty() ? 0 : calls_in_a_row_ + 1;
  if (takes_step) {
    ++running_steps_;
  } else {
    --waiting_calls_;
  }
  return {std::move(task), takes_step};
}

void WorkerPool::Run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && !MayTake()) lock.Wait(changed_);
    // Those who run steps take the steps that are left while it stops.
    if (!MayTake()) return;
    Taken taken = TakeNext();
    lock.Unlock();
    taken.task();
    taken.task = nullptr;
    lock.Lock();
    if (taken.is_step) --running_steps_;
  }
}

}  // namespace muster::broker
