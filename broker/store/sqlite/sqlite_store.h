// Stores the jobs of a broker on one machine: one SQLite file in its state directory.
//
// One connection writes and checkpoints; a few read-only ones serve readers. This is because SQLite
// before 3.51.3 can damage a WAL database when two connections write or checkpoint at the same
// instant.
#ifndef MUSTER_BROKER_STORE_SQLITE_SQLITE_STORE_H_
#define MUSTER_BROKER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/store/store.h"

namespace muster::store {

struct SqliteOptions {
  // Holds broker.db, its -wal and -shm, and broker.lock. Must exist.
  std::string directory;
  absl::Duration request_memory =
      absl::Hours(24);  // as in core::Options; Restore brings back as much

  int readers = 4;                        // connections for readers; other readers wait
  int64_t writer_cache_bytes = 16 << 20;  // hot pages of the tables and indexes
  int64_t reader_cache_bytes = 8 << 20;   // for each reader
  int64_t checkpoint_wal_bytes = 16
                                 << 20;  // beyond it, each commit moves what it can to the database
  int64_t restart_wal_bytes = 64 << 20;  // after each so many bytes, a commit waits 100 ms for
                                         // readers, so that the WAL starts again
  int64_t idle_checkpoint_bytes = 1 << 20;  // below it, Idle leaves the WAL alone
  const char* vfs = nullptr;  // SQLite's file layer; tests put faults there. Null: the default
};

class SqliteStore : public Store {
 public:
  // Opens the database of the directory, or makes it if there is none. FAILED_PRECONDITION: another
  // broker uses the directory, or a newer release wrote the file. DATA_LOSS: the file is damaged;
  // it is never replaced by an empty one.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(SqliteOptions options);
  ~SqliteStore() override;

  absl::StatusOr<core::Restored> Restore(absl::Time now) override;
  absl::Status Commit(absl::Span<const core::Change> changes) override;
  absl::Status Idle() override;

  absl::StatusOr<v1::Job> GetJob(const Scope& scope, uint64_t id) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobs(const Scope& scope,
                                               absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobsAndRuns(
      const Scope& scope, absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<JobPage> ListJobs(const Scope& scope, const ListQuery& query) const override;
  absl::StatusOr<JobCounts> CountJobs(const Scope& scope, const CountQuery& query) const override;
  absl::StatusOr<std::vector<JobTransition>> ListTransitions(const Scope& scope,
                                                             absl::Span<const uint64_t> jobs,
                                                             uint64_t after_sequence,
                                                             int limit) const override;
  absl::StatusOr<std::vector<RunChange>> ListRunChanges(const Scope& scope,
                                                        absl::Span<const uint64_t> jobs,
                                                        uint64_t after_sequence,
                                                        int limit) const override;
  absl::StatusOr<std::vector<uint64_t>> ListEnded(absl::Time before, int max_rows) const override;
  absl::StatusOr<uint64_t> LastSequence() const override;
  absl::StatusOr<std::vector<StoredSpec>> GetSpecs(const Scope& scope,
                                                   absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<UsageRows> ListUsage(const Scope& scope, const UsageQuery& query) const override;
  absl::StatusOr<std::vector<v1::JobState>> GetStates(
      absl::Span<const uint64_t> ids) const override;
  absl::StatusOr<std::vector<v1::Job>> GetJobsOfRequest(
      const Scope& scope, uint64_t first, const std::string& request_id) const override;

 private:
  struct Parts;
  explicit SqliteStore(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_SQLITE_STORE_H_
