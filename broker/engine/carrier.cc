#include "broker/engine/carrier.h"

#include <utility>

namespace muster::broker {

Carrier::Carrier(CarryOut carry_out) : carry_out_(std::move(carry_out)) {}

Carrier::~Carrier() { Stop(); }

void Carrier::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Carrier::Post(core::Output committed) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kMaxWaiting; });
  waiting_.push_back(std::move(committed));
  lock.unlock();
  changed_.notify_all();
}

void Carrier::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Carrier::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_.empty() || stopping_; });
    if (waiting_.empty()) return;
    core::Output committed = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    carry_out_(std::move(committed));
  }
}

}  // namespace muster::broker
