#include "broker/engine/carrier.h"

#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

Carrier::Carrier(CarryOut carry_out) : carry_out_(std::move(carry_out)) {}

Carrier::~Carrier() { Stop(); }

void Carrier::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Carrier::Post(core::Output committed) {
  MutexLock lock(mutex_);
  while (waiting_.size() >= kMaxWaiting) lock.Wait(changed_);
  waiting_.push_back(std::move(committed));
  lock.Unlock();
  changed_.notify_all();
}

void Carrier::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Carrier::Run() {
  for (;;) {
    MutexLock lock(mutex_);
    while (waiting_.empty() && !stopping_) lock.Wait(changed_);
    if (waiting_.empty()) return;
    core::Output committed = std::move(waiting_.front());
    waiting_.pop_front();
    lock.Unlock();
    changed_.notify_all();
    carry_out_(std::move(committed));
  }
}

}  // namespace muster::broker
