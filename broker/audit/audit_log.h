// Writes the audit log: records from any thread, one thread that writes them in groups.
//
// A record of a change of jobs or files is on disk at most `max_delay` and one commit after the
// change was acknowledged. A record that somebody waits for is written at once, with all that
// came before it. Changes of jobs that one caller makes meanwhile share a record (shared_record.h).
#ifndef MUSTER_BROKER_AUDIT_AUDIT_LOG_H_
#define MUSTER_BROKER_AUDIT_AUDIT_LOG_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/audit/audit_file.h"
#include "broker/audit/record.h"
#include "broker/audit/refusal_rate.h"
#include "sync/mutex.h"

namespace muster::audit {

struct Options {
  std::string path = {};  // required
  // Records are kept for this time; zero means for ever.
  absl::Duration retention = absl::Hours(24 * 400);
  // The file has at most this many bytes; the oldest records make room.
  uint64_t max_bytes = uint64_t{4} << 30;
  // The longest wait for more records that are written together. A commit takes some milliseconds
  // of the disk that also has the jobs, so that a few in a second are not felt.
  std::chrono::milliseconds max_delay{100};
  // At most this many records wait for the disk; with more of them, answers wait, too.
  size_t max_queued = 10'000;
};

class AuditLog {
 public:
  using Written = std::function<void()>;

  // `on_failure` is called on the writing thread: a record could not be written, none will be, and
  // the process must end. Errors as of AuditFile::Open.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(
      Options options, std::function<absl::Time()> now,
      std::function<void(const absl::Status&)> on_failure);
  // Stops first.
  ~AuditLog();

  // Gives the record its time and queues it. True: the answer to the call must wait for `written`,
  // which is called on the writing thread when the record is on disk. This is so if `must_wait`,
  // and if the queue is full. False: `written` is not called.
  bool Append(Record record, bool must_wait, const Written& written);
  // Queues the record of a refused call, or counts it as left out.
  void AppendRefusal(Record record);
  // Returns when the record is on disk.
  void AppendAndWait(Record record);

  // Records what was left out, logs the newest record's hash if it has changed since the last call,
  // and begins to remove records that are too old. Call it about once a minute.
  void Housekeep();
  // Writes all that is queued. Later records are left out.
  void Stop();

  const std::string& path() const { return options_.path; }
  // Records that wait for the disk, and the most before answers wait.
  size_t queued() const;
  size_t max_queued() const { return options_.max_queued; }

 private:
  struct Waiting {
    Record record;
    Written written;  // null: nobody waits
  };

  AuditLog(Options options, std::unique_ptr<AuditFile> file, std::function<absl::Time()> now,
           std::function<void(const absl::Status&)> on_failure);
  int64_t NowMicros() const { return absl::ToUnixMicros(now_()); }
  void Queue(Record record, Written written) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueLeftOut(bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Is the writing thread.
  void Run();
  // Waits until there is something to write, and takes it. False: stopped, and nothing is left.
  bool TakeGroup(std::vector<Waiting>* group, bool* is_retention_due);
  absl::Status Write(std::vector<Waiting>* group, bool is_retention_due);
  absl::Status Retain();

  const Options options_;
  const std::function<absl::Time()> now_;
  const std::function<void(const absl::Status&)> on_failure_;
  const std::unique_ptr<AuditFile> file_;  // of the writing thread

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point due_ ABSL_GUARDED_BY(mutex_);  // of a queue with records
  bool is_urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_retention_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  RefusalRate refusals_ ABSL_GUARDED_BY(mutex_);
  Head head_ ABSL_GUARDED_BY(mutex_);
  uint64_t logged_seq_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_AUDIT_LOG_H_
