#include "agents/slurm/record_watcher.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sync/mutex.h"

namespace muster::slurm {

RecordWatcher::RecordWatcher(PatientReads* reads, std::string directory, absl::Duration interval)
    : reads_(reads),
      directory_(std::move(directory)),
      interval_(interval),
      thread_([this] { Watch(); }) {}

RecordWatcher::~RecordWatcher() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RecordWatcher::SetWaker(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void RecordWatcher::WakeIn(absl::Duration wait) {
  {
    const MutexLock lock(mutex_);
    wake_at_ = std::min(wake_at_, time_.Now() + wait);
  }
  changed_.notify_all();
}

void RecordWatcher::SetActive(bool active) {
  {
    const MutexLock lock(mutex_);
    if (!active) list_at_ = absl::InfiniteFuture();
    if (active && !active_) list_at_ = time_.Now() + interval_;
    active_ = active;
  }
  changed_.notify_all();
}

void RecordWatcher::Watch() {
  MutexLock lock(mutex_);
  while (!stop_) {
    const absl::Time now = time_.Now();
    const absl::Time next = NextTime();
    if (next == absl::InfiniteFuture()) {
      lock.Wait(changed_);
    } else if (now < next) {
      lock.WaitUntil(changed_,
                     std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(next - now));
    } else {
      bool wakes = wake_at_ <= now;
      if (wakes) wake_at_ = absl::InfiniteFuture();
      if (list_at_ <= now) {
        lock.Unlock();
        wakes |= HasNews();
        lock.Lock();
        if (active_) list_at_ = time_.Now() + interval_;
      }
      // Called with the lock held: no call comes after SetWaker has replaced it.
      if (wakes && wake_ != nullptr) wake_();
    }
  }
}

bool RecordWatcher::HasNews() {
  // A directory that cannot be listed rings no bell; squeue tells of the end all the same.
  const absl::StatusOr<std::vector<std::string>> names = reads_->ListDirectory(directory_);
  if (!names.ok()) return false;
  std::set<std::string> now(names->begin(), names->end());
  bool news = false;
  for (const std::string& name : now) news = news || !known_.contains(name);
  known_ = std::move(now);
  return news;
}

}  // namespace muster::slurm
