// Knows the jobs whose logs were used lately, and the size of all logs. Any thread.
//
// An entry is only a copy of what is on disk, so an unused one may be dropped at any time.
#ifndef MUSTER_BROKER_LOGS_JOB_CACHE_H_
#define MUSTER_BROKER_LOGS_JOB_CACHE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "broker/logs/job_directory.h"
#include "sync/mutex.h"

namespace muster::logs {

struct Order;

// Holds one log. A thread holds `mutex` to change it; readers look at the atomics: the state first,
// then the size, which is final once the state is.
struct Log {
  Mutex mutex;
  std::atomic<LogState> state = LogState::kOpen;
  std::atomic<uint64_t> size = 0;
  std::atomic<bool> refused = false;           // bytes were refused because of the cap
  Order* order = nullptr;                      // order of its rank; never changes
  bool exists ABSL_GUARDED_BY(mutex) = false;  // the file is there
  // The file's name, which changes before `state` does.
  LogState name ABSL_GUARDED_BY(mutex) = LogState::kOpen;
  // Bytes since the disk was last asked to write.
  uint64_t unsynced ABSL_GUARDED_BY(mutex) = 0;
  // CRC of the bytes in the last block, see block_sums.h.
  uint32_t block_crc ABSL_GUARDED_BY(mutex) = 0;
};

// The order in which the outputs of one rank follow each other, see order_file.h.
struct Order {
  Mutex mutex;
  // Unspecified if it is not known.
  v1::LogStream grew_last ABSL_GUARDED_BY(mutex) = v1::LOG_STREAM_UNSPECIFIED;
  std::atomic<uint64_t> marks = 0;  // number of marks in the file; changed under mutex
};

struct Job {
  explicit Job(uint64_t id) : id(id) {}

  const uint64_t id;
  Mutex mutex;  // guards the maps, but not their elements
  std::map<LogName, std::unique_ptr<Log>> logs ABSL_GUARDED_BY(mutex);       // never erased from
  std::map<RankName, std::unique_ptr<Order>> orders ABSL_GUARDED_BY(mutex);  // never erased from
  std::atomic<uint64_t> bytes = 0;  // reserved by all of its logs
  std::atomic<bool> expired = false;
  std::atomic<bool> has_logs = false;        // it has files on disk
  std::atomic<bool> parents_synced = false;  // the names of its directories are synced, and the
                                             // names that a process before this one has given

  // Returns null if the log has not begun.
  Log* Find(const LogName& name);
  // Returns the log, and makes it if it is not there.
  Log* FindOrMake(const LogName& name);
  // Returns null if no log of the rank has begun.
  Order* FindOrder(const RankName& name);
  // True if it has logs and all of them have ended.
  bool HasEnded();
};

class JobCache {
 public:
  JobCache(std::filesystem::path root, size_t max_jobs)
      : root_(std::move(root)), entries_kept_(max_jobs / kShards) {}

  // Returns the job, which is read from disk if it is not in memory.
  absl::StatusOr<std::shared_ptr<Job>> Get(uint64_t job);
  // Counts a job that was there before this process, unless it was counted at its use. Call it once
  // for each job, in rising order, and call SurveyDone after the last.
  absl::StatusOr<FoundJob> Survey(uint64_t job);
  void SurveyDone();

  // Is the size of all logs; complete once the survey is over.
  std::atomic<int64_t>& total_bytes() { return total_bytes_; }
  std::atomic<int64_t>& total_jobs() { return total_jobs_; }

 private:
  static constexpr size_t kShards = 16;

  struct Shard {
    Mutex mutex;
    std::unordered_map<uint64_t, std::shared_ptr<Job>> jobs ABSL_GUARDED_BY(mutex);
    // Jobs that were counted at their use, before the survey reached them.
    std::unordered_set<uint64_t> counted ABSL_GUARDED_BY(mutex);
    size_t sweep_at ABSL_GUARDED_BY(mutex) = 0;
  };

  Shard& ShardOf(uint64_t job) { return shards_[job % kShards]; }
  absl::StatusOr<std::shared_ptr<Job>> Load(uint64_t job, Shard* shard)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Fills in the orders of the ranks; orders of open logs are cut at the end of these logs.
  absl::Status LoadOrders(Job* job, const FoundJob& found);
  // Fills in the job's logs, for open ones only what a crash has left intact; corrects the sizes in
  // `found`.
  absl::Status LoadLogs(Job* job, FoundJob* found, bool is_counted);
  void Count(const FoundJob& found);

  const std::filesystem::path root_;
  const size_t entries_kept_;  // bound of a shard; beyond it, unused entries are dropped
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> surveyed_up_to_ = 0;  // changed under the lock of the job's shard
  std::atomic<int64_t> total_bytes_ = 0;
  std::atomic<int64_t> total_jobs_ = 0;
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_JOB_CACHE_H_
