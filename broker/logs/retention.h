// Which jobs' logs are to be removed next. Any thread.
#ifndef MUSTER_BROKER_LOGS_RETENTION_H_
#define MUSTER_BROKER_LOGS_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/logs/job_cache.h"

namespace muster::logs {

// A job all of whose logs have ended. It may have got a new one since; whoever removes it looks
// again.
struct EndedJob {
  absl::Time ended;
  uint64_t job = 0;

  friend bool operator>(const EndedJob& a, const EndedJob& b) {
    return std::tie(a.ended, a.job) > std::tie(b.ended, b.job);
  }
};

class Retention {
 public:
  // Looks once through all that was there before this process: about 20 us for each job. Adds what
  // has ended and removes what a crash left half removed. Repeats after an error go on where it
  // stopped.
  absl::Status Survey(const std::filesystem::path& root, JobCache* cache);

  void Add(EndedJob ended);
  // Takes the one that ended first, if it ended before `cutoff`.
  std::optional<EndedJob> TakeFirst(absl::Time cutoff);

 private:
  std::mutex survey_mutex_;  // one survey at a time
  bool surveyed_ = false;
  uint64_t next_job_ = 0;

  std::mutex mutex_;
  std::priority_queue<EndedJob, std::vector<EndedJob>, std::greater<>> ended_;
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_RETENTION_H_
