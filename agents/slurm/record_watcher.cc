#include "agents/slurm/record_watcher.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::slurm {

RecordWatcher::RecordWatcher(hosts::Host* host, std::string directory, absl::Duration interval)
    : host_(host),
      directory_(std::move(directory)),
      interval_(interval),
      thread_([this] { Watch(); }) {}

RecordWatcher::~RecordWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RecordWatcher::SetWaker(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void RecordWatcher::SetActive(bool active) {
  {
    const std::lock_guard lock(mutex_);
    active_ = active;
  }
  changed_.notify_all();
}

void RecordWatcher::Watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_.wait(lock, [this] { return stop_ || active_; });
    changed_.wait_for(lock, absl::ToChronoNanoseconds(interval_), [this] { return stop_; });
    if (stop_) return;
    lock.unlock();
    const bool news = HasNews();
    lock.lock();
    // Called with the lock held: no call comes after SetWaker has replaced it.
    if (news && wake_ != nullptr) wake_();
  }
}

bool RecordWatcher::HasNews() {
  // A directory that cannot be listed rings no bell; squeue tells of the end all the same.
  const absl::StatusOr<std::vector<std::string>> names = host_->ListDirectory(directory_);
  if (!names.ok()) return false;
  std::set<std::string> now(names->begin(), names->end());
  bool news = false;
  for (const std::string& name : now) news = news || !known_.contains(name);
  known_ = std::move(now);
  return news;
}

}  // namespace muster::slurm
