#include "broker/engine/detour.h"

#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

Detour::~Detour() { Stop(); }

void Detour::Start() {
  thread_ = std::thread([this] { Run(); });
}

bool Detour::Holds(uint64_t key) const {
  const MutexLock lock(mutex_);
  return tasks_.contains(key);
}

void Detour::Post(uint64_t key, size_t rows, Task task) {
  {
    MutexLock lock(mutex_);
    while (!items_.empty() && rows_ + rows > max_rows_) lock.Wait(changed_);
    items_.push_back({key, rows, std::move(task)});
    rows_ += rows;
    ++tasks_[key];
  }
  changed_.notify_all();
}

void Detour::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Detour::Run() {
  for (;;) {
    MutexLock lock(mutex_);
    while (!stopping_ && items_.empty()) lock.Wait(changed_);
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    rows_ -= item.rows;
    lock.Unlock();
    changed_.notify_all();
    item.task();
    item.task = nullptr;
    lock.Lock();
    const auto tasks = tasks_.find(item.key);
    if (--tasks->second == 0) tasks_.erase(tasks);
  }
}

}  // namespace muster::broker
