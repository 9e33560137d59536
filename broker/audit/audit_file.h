// Keeps the file of the audit log: SQLite, one row for each record, chained by hashes.
//
// AuditFile writes, one thread at a time. ReadRecords and Verify open the file for themselves, on
// any thread, and see what is on disk.
#ifndef MUSTER_BROKER_AUDIT_AUDIT_FILE_H_
#define MUSTER_BROKER_AUDIT_AUDIT_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/audit/record.h"
#include "daemon/sqlite.h"

namespace muster::audit {

// The newest record.
struct Head {
  uint64_t seq = 0;  // 0: there is none
  std::string hash = {};
};

class AuditFile {
 public:
  // Makes the file if it is missing. FAILED_PRECONDITION: a newer release wrote it. Others as of
  // Database::ToStatus.
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(const std::string& path);

  // Adds the records in one transaction. OK: they are on disk. Another process may have written in
  // between.
  absl::Status Append(absl::Span<Record> records);
  // Removes the oldest records, at most `most`: those before `before_micros`, and then those that
  // make the file larger than `max_bytes`. One more record names the last that went. Returns the
  // number of removed ones.
  absl::StatusOr<uint64_t> Retain(int64_t before_micros, uint64_t max_bytes, uint64_t most,
                                  int64_t now_micros);

  absl::StatusOr<Head> ReadHead() const;

 private:
  explicit AuditFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Prepare();
  absl::Status AppendInTransaction(absl::Span<Record> records);
  absl::StatusOr<uint64_t> RetainInTransaction(int64_t before_micros, uint64_t max_bytes,
                                               uint64_t most, int64_t now_micros);
  // Returns the bytes of the file that are in use.
  absl::StatusOr<uint64_t> UsedBytes() const;

  // The statements end before their database.
  const std::unique_ptr<Database> database_;
  Statement insert_;
};

struct RecordFilter {
  uint64_t after_seq = 0;
  std::string user = {};    // empty: any; likewise below
  std::string action = {};  // "JobsService" means all of "JobsService.X"
  uint64_t job = 0;
  std::string result = {};
  std::optional<int64_t> since_micros = {};
  std::optional<int64_t> until_micros = {};
};

struct RecordPage {
  std::vector<Record> records;
  uint64_t last_seq = 0;  // the last one that was looked at; 0: nothing follows
};

// Reads records that fit the filter, until there are `most`, or until `most_read` were looked at.
absl::StatusOr<RecordPage> ReadRecords(const std::string& path, const RecordFilter& filter,
                                       size_t most, size_t most_read);

// Returns whether the text "3,7-9" has the job.
bool HasJob(std::string_view jobs, uint64_t job);

struct Findings {
  bool is_intact = false;
  uint64_t records = 0;  // that fit
  uint64_t bad_seq = 0;
  std::string problem = {};
  Head head = {};
};

// Compares every record with the chain. `known`: a record that was noted elsewhere must be there.
// FAILED_PRECONDITION: that record is older than the log. `is_cancelled` ends it early with
// CANCELLED.
absl::StatusOr<Findings> Verify(const std::string& path, const std::optional<Head>& known,
                                const std::function<bool()>& is_cancelled);

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_AUDIT_FILE_H_
