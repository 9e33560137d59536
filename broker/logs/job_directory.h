// The logs of one job on disk.
//
//   <root>/<job / 1000>/<job>/<run>-<rank>-<stream>.<state>
//   <root>/<job / 1000>/<job>/<run>-<rank>-<stream>.sums
//   <root>/<job / 1000>/<job>/<run>-<rank>.order
//
// The state of a log is the end of its name, because a rename is atomic and needs no further file:
// "open" (bytes may follow), "done" (the whole log) or "cut" (its end was beyond the job's cap).
// Beside an open log are its checksums, see block_sums.h; beside the logs of a rank that wrote to
// both outputs is their order, see order_file.h. The directory's modification time is the end of
// the last log. A job whose logs were removed has a bit in <root>/<job / 1000>/expired.
//
// The functions are not synchronised; archive.cc says which locks they need.
#ifndef MUSTER_BROKER_LOGS_JOB_DIRECTORY_H_
#define MUSTER_BROKER_LOGS_JOB_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/logs/archive.h"
#include "broker/logs/block_sums.h"

namespace muster::logs {

// Keeps directories small enough for every file system and for `ls`.
inline constexpr uint64_t kJobsPerBucket = 1000;

enum class LogState { kOpen, kDone, kCut, kExpired };

// Names a log within its job.
struct LogName {
  uint32_t run = 0;
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;

  friend auto operator<=>(const LogName&, const LogName&) = default;
};

// Names a rank within its job.
struct RankName {
  uint32_t run = 0;
  uint32_t rank = 0;

  friend auto operator<=>(const RankName&, const RankName&) = default;
};

struct FoundLog {
  LogState state = LogState::kOpen;
  uint64_t size = 0;
};

struct FoundJob {
  bool exists = false;                      // the directory is there
  bool expired = false;                     // its logs were removed, or are about to be
  absl::Time ended = absl::InfinitePast();  // end of the last log; meaningless while a log is open
  std::map<LogName, FoundLog> logs;
  std::map<RankName, uint64_t> marks;  // number of marks in the files of the ranks' orders
};

std::filesystem::path BucketPath(const std::filesystem::path& root, uint64_t job);
std::filesystem::path JobPath(const std::filesystem::path& root, uint64_t job);
std::filesystem::path LogPath(const std::filesystem::path& root, uint64_t job, const LogName& name,
                              LogState state);

// Returns the path of an open log's sums.
std::filesystem::path SumsPath(const std::filesystem::path& root, uint64_t job,
                               const LogName& name);
std::filesystem::path OrderPath(const std::filesystem::path& root, uint64_t job,
                                const RankName& name);

// Returns the logs that are on disk. Files with other names are left alone.
absl::StatusOr<FoundJob> FindJob(const std::filesystem::path& root, uint64_t job);
// Cuts an open log after the last byte that matches its checksums, which a crash has left intact.
absl::StatusOr<IntactPart> RecoverLog(const std::filesystem::path& root, uint64_t job,
                                      const LogName& name);
// Cuts the order of a rank at the first mark beyond its logs. Returns the number of marks left.
absl::StatusOr<uint64_t> RecoverOrder(const std::filesystem::path& root, uint64_t job,
                                      const RankName& name, const OrderMark& sizes);
// Makes the job's directory if it is not there.
absl::Status MakeJobDirectory(const std::filesystem::path& root, uint64_t job);
// Gives an open log its final name and removes its checksums; `now` becomes the time of the job's
// directory. Not durable yet.
absl::Status RenameLog(const std::filesystem::path& root, uint64_t job, const LogName& name,
                       LogState state, absl::Time now);
// Makes the names of the job's logs durable; `parents` also those of its directories.
absl::Status SyncNames(const std::filesystem::path& root, uint64_t job, bool parents);
// Marks the job as expired, durably, then removes its files. Safe to repeat after a crash.
absl::Status RemoveJob(const std::filesystem::path& root, uint64_t job);
// Lists the jobs that have a directory in the buckets of the root, in rising order.
absl::StatusOr<std::vector<uint64_t>> ListBuckets(const std::filesystem::path& root);
absl::StatusOr<std::vector<uint64_t>> ListJobs(const std::filesystem::path& root, uint64_t bucket);

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_JOB_DIRECTORY_H_
