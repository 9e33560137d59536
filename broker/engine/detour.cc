#include "broker/engine/detour.h"

#include <utility>

namespace muster::broker {

Detour::~Detour() { Stop(); }

void Detour::Start() {
  thread_ = std::thread([this] { Run(); });
}

bool Detour::Holds(uint64_t key) const {
  std::lock_guard lock(mutex_);
  return tasks_.contains(key);
}

void Detour::Post(uint64_t key, size_t rows, Task task) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.empty() || rows_ + rows <= max_rows_; });
    items_.push_back({key, rows, std::move(task)});
    rows_ += rows;
    ++tasks_[key];
  }
  changed_.notify_all();
}

void Detour::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Detour::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    rows_ -= item.rows;
    lock.unlock();
    changed_.notify_all();
    item.task();
    item.task = nullptr;
    lock.lock();
    const auto tasks = tasks_.find(item.key);
    if (--tasks->second == 0) tasks_.erase(tasks);
  }
}

}  // namespace muster::broker
