// Chooses the jobs whose logs are removed next. Any thread.
#ifndef MUSTER_BROKER_LOGS_RETENTION_H_
#define MUSTER_BROKER_LOGS_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/logs/job_cache.h"
#include "sync/mutex.h"

namespace muster::logs {

// A job all of whose logs have ended. It may have a new log since; the remover looks again.
struct EndedJob {
  absl::Time ended;
  uint64_t job = 0;

  friend bool operator>(const EndedJob& a, const EndedJob& b) {
    return std::tie(a.ended, a.job) > std::tie(b.ended, b.job);
  }
};

class Retention {
 public:
  // Looks once through all that was there before this process, at about 20 us for each job. Adds
  // jobs whose logs have ended, and completes removals that a crash has interrupted. Repeats after
  // an error go on where it stopped.
  absl::Status Survey(const std::filesystem::path& root, JobCache* cache);

  void Add(EndedJob ended);
  // Takes the job whose logs ended first, if they ended before `cutoff`.
  std::optional<EndedJob> TakeFirst(absl::Time cutoff);

 private:
  Mutex survey_mutex_;  // one survey at a time
  bool surveyed_ ABSL_GUARDED_BY(survey_mutex_) = false;
  uint64_t next_job_ ABSL_GUARDED_BY(survey_mutex_) = 0;

  Mutex mutex_;
  std::priority_queue<EndedJob, std::vector<EndedJob>, std::greater<>> ended_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_RETENTION_H_
