#include "broker/logs/open_files.h"

#include "sync/mutex.h"

namespace muster::logs {

std::shared_ptr<FileDescriptor> OpenFiles::Find(const LogId& log) {
  const MutexLock lock(mutex_);
  const auto found = by_log_.find(log);
  if (found == by_log_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void OpenFiles::Insert(const LogId& log, std::shared_ptr<FileDescriptor> file) {
  const MutexLock lock(mutex_);
  if (const auto found = by_log_.find(log); found != by_log_.end()) {
    found->second->second = std::move(file);
    return;
  }
  entries_.emplace_front(log, std::move(file));
  by_log_[log] = entries_.begin();
  if (entries_.size() > capacity_) {
    by_log_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

void OpenFiles::Erase(const LogId& log) {
  const MutexLock lock(mutex_);
  const auto found = by_log_.find(log);
  if (found == by_log_.end()) return;
  entries_.erase(found->second);
  by_log_.erase(found);
}

size_t OpenFiles::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace muster::logs
