#include <fmt/format.h>
#include <sqlite3.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "broker/store/sqlite/sqlite_store.h"
#include "clients/cpp/client.h"
#include "muster/v1/job.pb.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

// Prepared statements on the broker's own schema, and nothing else: what the disk and SQLite can
// do.
class RowWriter {
 public:
  explicit RowWriter(sqlite3* database)
      : begin_(Prepare(database, "BEGIN IMMEDIATE")),
        commit_(Prepare(database, "COMMIT")),
        job_(Prepare(
            database,
            "INSERT INTO job (id, state, job_sequence, cancel_requested, runs, cluster, spec,"
            " priority, create_time, name, project, user, request_id, fingerprint) VALUES"
            " (?, 1, 1, 0, 0, '', 1, 0, ?, ?, 'default', 'bench', ?, ?)")),
        spec_(Prepare(database,
                      "INSERT OR IGNORE INTO spec (id, digest, spec) VALUES (1, X'00', ?)")),
        use_(Prepare(database,
                     "INSERT INTO spec_use (spec, jobs) VALUES (1, ?1) ON CONFLICT (spec)"
                     " DO UPDATE SET jobs = jobs + ?1")),
        transition_(Prepare(
            database, "INSERT INTO transition (sequence, job, transition) VALUES (?, ?, ?)")) {}

  bool WriteBatch(uint64_t first, int jobs) {
    bool ok = Run(begin_.get());
    // The jobs differ in their names, which their rows have.
    BindBytes(spec_.get(), 1, SampleSpec(first).SerializeAsString());
    sqlite3_bind_int(use_.get(), 1, jobs);
    ok = ok && Run(spec_.get()) && Run(use_.get());
    for (uint64_t id = first; id < first + jobs; ++id) ok = ok && WriteJob(id);
    return ok && Run(commit_.get());
  }

 private:
  static Statement Prepare(sqlite3* database, const char* sql) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    return Statement(statement, sqlite3_finalize);
  }
  static bool Run(sqlite3_stmt* statement) {
    const bool ok = statement != nullptr && sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return ok;
  }
  static void BindBytes(sqlite3_stmt* statement, int at, const std::string& bytes) {
    sqlite3_bind_blob64(statement, at, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }

  bool WriteJob(uint64_t id) {
    const v1::JobSpec spec = SampleSpec(id);
    sqlite3_bind_int64(job_.get(), 1, id);
    sqlite3_bind_int64(job_.get(), 2, absl::ToUnixMicros(absl::Now()));
    sqlite3_bind_text(job_.get(), 3, spec.name().c_str(), -1, SQLITE_TRANSIENT);
    const std::string request_id = client::NewRequestId();
    sqlite3_bind_text(job_.get(), 4, request_id.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(job_.get(), 5, id);
    sqlite3_bind_int64(transition_.get(), 1, id);
    sqlite3_bind_int64(transition_.get(), 2, id);
    BindBytes(transition_.get(), 3, Submitted(id).SerializeAsString());
    return Run(job_.get()) && Run(transition_.get());
  }

  static v1::Transition Submitted(uint64_t id) {
    v1::Transition transition;
    transition.set_job_sequence(1);
    transition.set_sequence(id);
    transition.set_job_state(v1::JOB_STATE_QUEUED);
    transition.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
    transition.set_kind(v1::TRANSITION_KIND_SUBMITTED);
    transition.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_USER);
    transition.mutable_evidence()->set_detail("submitted by bench");
    return transition;
  }

  Statement begin_, commit_, job_, spec_, use_, transition_;
};

}  // namespace

absl::Status InsertRows(const Load& load) {
  // The broker's store makes the schema; it is closed again before the rows are written.
  if (auto store = store::SqliteStore::Open({.directory = load.dir}); !store.ok())
    return store.status();
  sqlite3* handle = nullptr;
  if (sqlite3_open((load.dir + "/broker.db").c_str(), &handle) != SQLITE_OK) {
    return absl::UnavailableError("the database cannot be opened");
  }
  Database database(handle, sqlite3_close);
  sqlite3_exec(handle,
               "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
               "PRAGMA wal_autocheckpoint=4096;",
               nullptr, nullptr, nullptr);
  uint64_t jobs = 0;
  const absl::Time start = absl::Now();
  {
    RowWriter writer(handle);
    while (absl::Now() < start + absl::Seconds(load.seconds)) {
      if (!writer.WriteBatch(jobs + 1, load.batch)) {
        return absl::InternalError(sqlite3_errmsg(handle));
      }
      jobs += load.batch;
    }
  }
  fmt::print("{{\"per_s\": {:.1f}}}\n", jobs / absl::ToDoubleSeconds(absl::Now() - start));
  return absl::OkStatus();
}

}  // namespace muster::bench
