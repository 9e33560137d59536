// Notices new exit records before the next squeue, by listing the one directory that they are all
// in, and wakes the agent for looks that are due sooner than its next one.
//
// Owns one thread; the other members may be called from any thread.
#ifndef MUSTER_AGENTS_SLURM_RECORD_WATCHER_H_
#define MUSTER_AGENTS_SLURM_RECORD_WATCHER_H_

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/slurm/patient_reads.h"
#include "sync/mutex.h"

namespace muster::slurm {

class RecordWatcher {
 public:
  // `reads` must outlive this object.
  RecordWatcher(PatientReads* reads, std::string directory, absl::Duration interval);
  ~RecordWatcher();

  // Called from the watcher's thread when a record has appeared, and for WakeIn.
  void SetWaker(std::function<void()> wake);
  // Wakes the agent once after that time, or after an earlier call's if that is sooner.
  void WakeIn(absl::Duration wait);
  // Returns whether there are runs whose end is waited for; without, the directory is left alone.
  void SetActive(bool active);

 private:
  void Watch();
  // Returns the time at which something is due next. The caller holds the lock.
  absl::Time NextTime() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(wake_at_, list_at_);
  }
  // Returns whether the directory has a name that it did not have at the last look.
  bool HasNews();

  PatientReads* const reads_;
  const std::string directory_;
  const absl::Duration interval_;
  const agents::SteadyTime time_;
  std::set<std::string> known_;  // the thread's own

  Mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time wake_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // by time_, like the next
  absl::Time list_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // infinite: not active
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_RECORD_WATCHER_H_
