#include "broker/store/sqlite/sqlite_store.h"

#include <utility>

#include "broker/store/sqlite/create.h"
#include "broker/store/sqlite/reader_pool.h"
#include "broker/store/sqlite/restore.h"
#include "broker/store/sqlite/writer.h"
#include "daemon/directory_lock.h"

namespace muster::store {

// The order matters: readers close before the writer, which checkpoints as it closes, and the lock
// goes last.
struct SqliteStore::Parts {
  SqliteOptions options;
  std::unique_ptr<DirectoryLock> lock;
  std::unique_ptr<Writer> writer;
  std::unique_ptr<ReaderPool> readers;
};

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(SqliteOptions options) {
  auto parts = std::make_unique<Parts>();
  auto lock = DirectoryLock::Take(
      {.path = options.directory + "/broker.lock",
       .if_held = "stop that broker, or choose another state directory",
       .if_not_writable = "the state directory must exist and belong to the broker's user"});
  if (!lock.ok()) return lock.status();
  parts->lock = *std::move(lock);
  if (absl::Status status = CreateIfMissing(options); !status.ok()) return status;
  const std::string path = DatabasePath(options.directory);
  auto writer = Writer::Open(path, options);
  if (!writer.ok()) return writer.status();
  parts->writer = *std::move(writer);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < options.readers; ++i) {
    auto reader = Reader::Open(path, options);
    if (!reader.ok()) return reader.status();
    readers.push_back(*std::move(reader));
  }
  parts->readers = std::make_unique<ReaderPool>(std::move(readers));
  parts->options = std::move(options);
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(parts)));
}

SqliteStore::SqliteStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SqliteStore::~SqliteStore() = default;

absl::StatusOr<core::Restored> SqliteStore::Restore(absl::Time now) {
  return RestoreFrom(parts_->writer->database(), now - parts_->options.request_memory);
}

absl::Status SqliteStore::Commit(absl::Span<const core::Change> changes) {
  return parts_->writer->Commit(changes);
}

absl::Status SqliteStore::Idle() { return parts_->writer->Idle(); }

absl::StatusOr<v1::Job> SqliteStore::GetJob(const Scope& scope, uint64_t id) const {
  return parts_->readers->With([&](Reader& reader) { return reader.GetJob(scope, id); });
}

absl::StatusOr<std::vector<v1::Job>> SqliteStore::GetJobs(const Scope& scope,
                                                          absl::Span<const uint64_t> ids) const {
  return parts_->readers->With([&](Reader& reader) { return reader.GetJobs(scope, ids); });
}

absl::StatusOr<std::vector<v1::Job>> SqliteStore::GetJobsAndRuns(
    const Scope& scope, absl::Span<const uint64_t> ids) const {
  return parts_->readers->With([&](Reader& reader) { return reader.GetJobsAndRuns(scope, ids); });
}

absl::StatusOr<JobPage> SqliteStore::ListJobs(const Scope& scope, const ListQuery& query) const {
  return parts_->readers->With([&](Reader& reader) { return reader.ListJobs(scope, query); });
}

absl::StatusOr<JobCounts> SqliteStore::CountJobs(const Scope& scope,
                                                 const CountQuery& query) const {
  return parts_->readers->With([&](Reader& reader) { return reader.CountJobs(scope, query); });
}

absl::StatusOr<std::vector<JobTransition>> SqliteStore::ListTransitions(
    const Scope& scope, absl::Span<const uint64_t> jobs, uint64_t after_sequence, int limit) const {
  return parts_->readers->With(
      [&](Reader& reader) { return reader.ListTransitions(scope, jobs, after_sequence, limit); });
}

absl::StatusOr<std::vector<RunChange>> SqliteStore::ListRunChanges(const Scope& scope,
                                                                   absl::Span<const uint64_t> jobs,
                                                                   uint64_t after_sequence,
                                                                   int limit) const {
  return parts_->readers->With(
      [&](Reader& reader) { return reader.ListRunChanges(scope, jobs, after_sequence, limit); });
}

absl::StatusOr<std::vector<uint64_t>> SqliteStore::ListEnded(absl::Time before,
                                                             int max_rows) const {
  return parts_->readers->With([&](Reader& reader) { return reader.ListEnded(before, max_rows); });
}

absl::StatusOr<uint64_t> SqliteStore::LastSequence() const {
  return parts_->readers->With([](Reader& reader) { return reader.LastSequence(); });
}

absl::StatusOr<std::vector<StoredSpec>> SqliteStore::GetSpecs(
    const Scope& scope, absl::Span<const uint64_t> ids) const {
  return parts_->readers->With([&](Reader& reader) { return reader.GetSpecs(scope, ids); });
}

absl::StatusOr<UsageRows> SqliteStore::ListUsage(const Scope& scope,
                                                 const UsageQuery& query) const {
  return parts_->readers->With([&](Reader& reader) { return reader.ListUsage(scope, query); });
}

absl::StatusOr<std::vector<v1::JobState>> SqliteStore::GetStates(
    absl::Span<const uint64_t> ids) const {
  return parts_->readers->With([&](Reader& reader) { return reader.GetStates(ids); });
}

absl::StatusOr<std::vector<v1::Job>> SqliteStore::GetJobsOfRequest(
    const Scope& scope, uint64_t first, const std::string& request_id) const {
  return parts_->readers->With(
      [&](Reader& reader) { return reader.GetJobsOfRequest(scope, first, request_id); });
}

}  // namespace muster::store
