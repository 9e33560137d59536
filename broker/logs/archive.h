// Keeps the output of runs in files, apart from the database: the log archive.
//
// A log is one output of one rank of one run. Bytes are appended in order and read from any offset.
// Names of files are made of numbers only. The disk is the truth: after a crash the archive goes on
// behind the last byte of a log that matches its checksum, and the pusher sends the rest again. The
// order in which the two outputs of a rank came is kept beside them, see order_file.h. Only the end
// of a log is synced, so that a power cut may take the last half minute or so before it; the death
// of the process alone takes nothing. The bytes at an offset are those of the pusher's file before
// and after a crash, so that a reader that was ahead loses nothing, either.
//
// All methods may be called from any thread; they do blocking file I/O. Each log has a lock of its
// own, so that a slow reader of one delays no other.
#ifndef MUSTER_BROKER_LOGS_ARCHIVE_H_
#define MUSTER_BROKER_LOGS_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/logs/order_file.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::logs {

struct LogId {
  uint64_t job = 0;
  uint32_t run = 0;
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;  // STDOUT or STDERR

  friend auto operator<=>(const LogId&, const LogId&) = default;
};

// Names the two outputs of a rank.
struct RankId {
  uint64_t job = 0;
  uint32_t run = 0;
  uint32_t rank = 0;

  LogId Log(v1::LogStream stream) const { return {job, run, rank, stream}; }
};

struct Options {
  // affects behaviour
  uint64_t max_job_bytes = uint64_t{1}
                           << 30;  // for all logs of a job; bytes beyond it are counted, not kept
  absl::Duration retention =
      absl::Hours(24 * 30);  // a job's logs are removed this long after its last log ended
  uint64_t max_total_bytes = uint64_t{100}
                             << 30;  // beyond it, the jobs whose logs ended first are removed
  // affects performance
  size_t max_open_files =
      512;  // descriptors kept open between calls; a log that is written has 2 or 3
  size_t max_cached_jobs =
      8192;  // jobs whose sizes and states are kept in memory, at about 500 B each
  uint64_t sync_after_bytes = uint64_t{8}
                              << 20;  // bytes of one log before the disk is asked to begin writing
};

struct AppendResult {
  uint64_t next_offset =
      0;  // the pusher goes on from here; if this is less than it sent, it sends again from here
  bool complete = false;  // the log has ended, and every byte kept is on disk (fdatasync)
  bool discarding =
      false;  // the cap is reached or the log has expired: only the end is still useful
};

struct ReadResult {
  uint64_t offset = 0;  // offset of the first byte of data
  std::string data;
  // Set if no byte follows `data` now: MORE_LATER, COMPLETE, TRUNCATED (the cap ends the log here,
  // complete or not) or EXPIRED. LOG_END_UNSPECIFIED: read on.
  v1::LogEnd end = v1::LOG_END_UNSPECIFIED;
};

// The size and the end of a log.
struct LogFacts {
  uint64_t size = 0;
  v1::LogEnd end = v1::LOG_END_MORE_LATER;  // as in ReadResult
};

struct ListedLog {
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;
  LogFacts facts;
};

struct Usage {
  uint64_t bytes = 0;  // size of all logs kept
  size_t jobs = 0;     // number of jobs that have logs
  size_t open_files = 0;
  size_t followers = 0;
};

// Ends a follow when it is destroyed: no wake begins after that. Must not outlive the archive.
class Follow {
 public:
  virtual ~Follow() = default;
};

class Archive {
 public:
  // Opens or makes the directory and reads its content. Times come from `now`. FAILED_PRECONDITION:
  // another process has it open.
  static absl::StatusOr<std::unique_ptr<Archive>> Open(const std::filesystem::path& directory,
                                                       Options options,
                                                       std::function<absl::Time()> now);
  virtual ~Archive() = default;

  // Appends the new part of `data`, whose first byte has this offset in the log. An overlap with
  // the log is skipped; after a gap nothing is taken, and next_offset says where to go on. An empty
  // `data` asks for next_offset. `end` says that no byte follows; it is taken only if the log then
  // reaches offset + data.size(). OK with complete is durable. RESOURCE_EXHAUSTED (disk full,
  // ErrorInfo DISK_FULL) or INTERNAL with the system's words: nothing is lost, append again from
  // the offset that the next OK tells.
  virtual absl::StatusOr<AppendResult> Append(const LogId& log, uint64_t offset,
                                              std::string_view data, bool end) = 0;

  // Reads up to max_bytes from an offset. Beyond the end there is no data, only the kind of end. A
  // log that has not begun is empty and MORE_LATER.
  virtual absl::StatusOr<ReadResult> Read(const LogId& log, uint64_t offset,
                                          size_t max_bytes) const = 0;

  // Returns the facts of a log without its bytes. A log that has not begun is empty and MORE_LATER.
  virtual absl::StatusOr<LogFacts> Look(const LogId& log) const = 0;

  // Lists the logs of a run that have begun, by rank, stdout before stderr.
  virtual absl::StatusOr<std::vector<ListedLog>> List(uint64_t job, uint32_t run) const = 0;

  // Reads up to `max` marks of the order of a rank's outputs, beginning at the mark with the number
  // `from`; `next` equals `from` if there are no more.
  virtual absl::StatusOr<OrderMarks> ReadOrder(const RankId& rank, uint64_t from,
                                               size_t max) const = 0;

  // Calls `wake` after each change of the log (bytes, end, expiry) until the result is destroyed.
  // The thread that made the change calls it, with no lock of the archive held that Read or Append
  // needs, so it may call Read; it should only post a task. Changes before this call cause no wake:
  // follow first, then read.
  virtual std::unique_ptr<Follow> StartFollow(const LogId& log, std::function<void()> wake) = 0;

  // Removes logs that are too old or too many, of at most `max_jobs` jobs, and returns the number
  // of these jobs. A removed log leaves a mark, so that readers see EXPIRED. Call it about once a
  // minute.
  virtual absl::StatusOr<int> Expire(int max_jobs) = 0;

  // Removes all logs of a deleted job, whether or not they have ended; readers see EXPIRED.
  virtual absl::Status Remove(uint64_t job) = 0;

  virtual Usage usage() const = 0;
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_ARCHIVE_H_
