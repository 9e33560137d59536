// Deletes jobs that ended long ago, with their logs.
//
// The work is done in slices of bounded size on the archive's workers: a slice reads from the store
// which jobs are due, removes their logs, and then has the core delete them. If the process ends in
// between, the next one finds the jobs again. Begin belongs to the main thread.
#ifndef MUSTER_BROKER_APP_JOB_EXPIRY_H_
#define MUSTER_BROKER_APP_JOB_EXPIRY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/worker_pool.h"
#include "broker/engine/effects.h"
#include "broker/logs/archive.h"
#include "broker/store/store.h"

namespace muster::broker {

class JobExpiry {
 public:
  struct Options {
    // Jobs are kept for this time after their end; zero means for ever.
    absl::Duration retention = absl::Hours(24 * 90);
    // Their request ids are remembered for this time: no job is deleted before its request id is
    // forgotten, because a repeat is answered with its number.
    absl::Duration request_memory = absl::Hours(24);
  };
  using DeleteJobs = std::function<void(std::vector<uint64_t> jobs, StatusDone done)>;

  // `delete_jobs` is the engine's.
  JobExpiry(Options options, const store::Store* store, logs::Archive* archive, WorkerPool* workers,
            std::function<absl::Time()> now, DeleteJobs delete_jobs);

  // Begins a pass if none runs.
  void Begin();

 private:
  void Post();
  void Step();
  // Returns the jobs of the next slice, whose logs are removed.
  absl::StatusOr<std::vector<uint64_t>> RemoveSomeLogs();
  void End(const absl::Status& status);

  const Options options_;
  const store::Store* const store_;
  logs::Archive* const archive_;
  WorkerPool* const workers_;
  const std::function<absl::Time()> now_;
  const DeleteJobs delete_jobs_;

  std::atomic<bool> is_running_ = false;
  // The members below belong to the running pass; while none runs, to Begin.
  absl::Time before_;  // jobs that ended before it are deleted
  uint64_t deleted_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_JOB_EXPIRY_H_
