#include "broker/store/sqlite/schema.h"

#include <fmt/format.h>

#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "broker/store/sqlite/functions.h"
#include "broker/store/sqlite/move_requests.h"
#include "broker/store/sqlite/move_specs.h"
#include "broker/store/sqlite/old_runs.h"
#include "broker/store/sqlite/request_step.h"
#include "contract/errors.h"
#include "contract/run_key.h"

namespace muster::store {
namespace {

// Times are microseconds since 1970, UTC. Blobs are messages of muster.v1.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE broker (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  instance TEXT NOT NULL,
  epoch INTEGER NOT NULL
) STRICT;

-- What changes and what lists show. The rest is in job_spec, so that these rows stay small.
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,
  job_sequence INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  cluster TEXT NOT NULL,
  start_time INTEGER,
  end_time INTEGER,
  shape INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  name TEXT NOT NULL,
  project TEXT NOT NULL,
  user TEXT NOT NULL,
  labels BLOB  -- a Job with nothing but labels
) STRICT;
-- The row id is the last column of every index, so each of these is read in the order of the ids.
CREATE INDEX job_by_state ON job (state);
CREATE INDEX job_by_name ON job (name);
CREATE INDEX job_by_project ON job (project);
CREATE INDEX job_by_cluster ON job (cluster) WHERE cluster <> '';
CREATE INDEX job_by_end ON job (end_time) WHERE end_time IS NOT NULL;

-- When the jobs of a block of ids were created, so that a list by time skips what cannot match. A clock may be set
-- back, hence both ends.
CREATE TABLE job_block (
  block INTEGER PRIMARY KEY,  -- id / 1024
  first_create_time INTEGER NOT NULL,
  last_create_time INTEGER NOT NULL
) STRICT;

CREATE TABLE job_spec (
  id INTEGER PRIMARY KEY,
  spec BLOB NOT NULL
) STRICT;

CREATE TABLE request (
  job INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL,
  fingerprint INTEGER NOT NULL
) STRICT;

CREATE TABLE label (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY (key, value, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
  id INTEGER PRIMARY KEY,  -- job * 65536 + number
  open INTEGER NOT NULL,   -- it has not ended, or the rest of its logs may still come
  run BLOB NOT NULL
) STRICT;
CREATE INDEX run_open ON run (open) WHERE open = 1;

CREATE TABLE transition (
  sequence INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  transition BLOB NOT NULL
) STRICT;
CREATE INDEX transition_by_job ON transition (job);

CREATE TABLE shape (
  id INTEGER PRIMARY KEY,
  spec BLOB NOT NULL
) STRICT;

CREATE TABLE cluster (
  name TEXT PRIMARY KEY,
  kind INTEGER NOT NULL,
  inventory BLOB NOT NULL,
  agent_version TEXT NOT NULL,
  journal_id TEXT NOT NULL,
  acked_event_sequence INTEGER NOT NULL,
  agent_epoch INTEGER NOT NULL,
  max_active_runs INTEGER NOT NULL,
  last_seen INTEGER NOT NULL
) STRICT;
)sql";

// Adds holds and retries.
constexpr std::string_view kVersion2 = R"sql(
ALTER TABLE job ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;  -- a HoldState
ALTER TABLE job ADD COLUMN retry_time INTEGER;  -- of its next run, while it waits for that
)sql";

// Adds what lists filter and order by. The latest run says how a job ended, as in UpdateJob and
// PutRun.
constexpr std::string_view kVersion4 = R"sql(
ALTER TABLE job ADD COLUMN cluster_kind INTEGER;   -- of the cluster of its latest run
ALTER TABLE job ADD COLUMN failure_class INTEGER;  -- of its latest run
ALTER TABLE job ADD COLUMN exit_code INTEGER;      -- likewise
ALTER TABLE job ADD COLUMN rerun_of INTEGER;       -- the job whose spec it has
UPDATE job SET
  cluster_kind = (SELECT nullif(c.kind, 0) FROM cluster c WHERE c.name = job.cluster),
  failure_class = (SELECT muster_failure_class(r.run) FROM run r WHERE r.id = job.id * 65536 + job.runs),
  exit_code = (SELECT muster_exit_code(r.run) FROM run r WHERE r.id = job.id * 65536 + job.runs)
  WHERE runs > 0;
CREATE INDEX job_by_user ON job (user);
CREATE INDEX job_by_start ON job (start_time) WHERE start_time IS NOT NULL;
CREATE INDEX job_by_priority ON job (priority) WHERE priority <> 0;
CREATE INDEX job_by_failure ON job (failure_class) WHERE failure_class IS NOT NULL;
CREATE INDEX job_by_exit_code ON job (exit_code) WHERE exit_code <> 0;
)sql";

// Lets ended jobs be deleted; their numbers stay used.
constexpr std::string_view kVersion6 = R"sql(
ALTER TABLE broker ADD COLUMN last_job INTEGER NOT NULL DEFAULT 0;       -- that was there as one was deleted
ALTER TABLE broker ADD COLUMN last_sequence INTEGER NOT NULL DEFAULT 0;  -- likewise
)sql";

// Keeps each spec once, see spec_table.h. Requirements are made from specs at each start.
constexpr std::string_view kVersion7 = R"sql(
CREATE TABLE spec (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL,  -- SHA-256 of the next
  spec BLOB NOT NULL     -- a JobSpec without what the row of its job has
) STRICT;
CREATE UNIQUE INDEX spec_by_digest ON spec (digest);
ALTER TABLE job RENAME COLUMN shape TO spec;
)sql";

// Drops what is left after all specs have moved.
constexpr std::string_view kVersion8 = R"sql(
DROP TABLE job_spec;
DROP TABLE shape;
CREATE INDEX job_by_spec ON job (spec);
)sql";

// These tables serve watchers from further back: they hold priority and labels of jobs before their
// users changed them, and the changes of runs without a transition.
constexpr std::string_view kVersion9 = R"sql(
CREATE TABLE edit (
  job INTEGER NOT NULL,
  sequence INTEGER NOT NULL,  -- of the transition
  before BLOB NOT NULL,       -- a Job with nothing but priority and labels
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;
ALTER TABLE run ADD COLUMN changed INTEGER;  -- the sequence of its latest change without a transition
CREATE INDEX run_by_change ON run (changed) WHERE changed IS NOT NULL;
)sql";

// Makes the row of a job tell its request, and counts the jobs of each spec: a table and an index
// less to write for each job. The counts are made in one transaction, unlike other rows: a million
// of them took 3 s.
constexpr std::string_view kVersion10 = R"sql(
ALTER TABLE job ADD COLUMN request_id TEXT;      -- null: it has none
ALTER TABLE job ADD COLUMN fingerprint INTEGER;  -- of the request
CREATE TABLE spec_use (
  spec INTEGER PRIMARY KEY,
  jobs INTEGER NOT NULL  -- that have this spec
) STRICT;
INSERT INTO spec_use SELECT spec, count(*) FROM job GROUP BY spec;
DROP INDEX job_by_spec;
)sql";

// Drops what is left after all requests have moved.
constexpr std::string_view kVersion11 = R"sql(
DROP TABLE request;
)sql";

// Takes the code 0 from jobs that a signal ended (5: succeeded).
constexpr std::string_view kVersion12 = R"sql(
UPDATE job SET
  exit_code = (SELECT muster_exit_code(r.run) FROM run r WHERE r.id = job.id * 65536 + job.runs)
  WHERE exit_code = 0 AND state <> 5;
)sql";

// Tells of a job that never had a run whose end let it fail.
constexpr std::string_view kVersion13 = R"sql(
ALTER TABLE job ADD COLUMN failed_dependency INTEGER;  -- the number of that job; null: none
)sql";

// Adds the operators' wish that a cluster takes no new runs.
constexpr std::string_view kVersion14 = R"sql(
ALTER TABLE cluster ADD COLUMN cordon BLOB;  -- a ClusterCordon; null: it takes some
)sql";

// Adds what projects and their users have used, by which they share.
constexpr std::string_view kVersion15 = R"sql(
CREATE TABLE share_use (
  project TEXT NOT NULL,
  user TEXT NOT NULL,
  at INTEGER NOT NULL,  -- the time of the next three, in which what was used a half-life before counts half
  cpu REAL NOT NULL,     -- thousandths of cores, times seconds
  memory REAL NOT NULL,  -- bytes, times seconds
  gpu REAL NOT NULL,     -- thousandths of GPUs, times seconds
  PRIMARY KEY (project, user)
) STRICT, WITHOUT ROWID;
)sql";

// Adds leases and the fail-over of jobs whose cluster is lost.
constexpr std::string_view kVersion16 = R"sql(
ALTER TABLE job ADD COLUMN fail_overs INTEGER NOT NULL DEFAULT 0;  -- runs that were given up with their clusters
ALTER TABLE cluster ADD COLUMN fence_delay INTEGER NOT NULL DEFAULT 0;  -- in us, see PutCluster
ALTER TABLE cluster ADD COLUMN lease INTEGER NOT NULL DEFAULT 0;        -- likewise
)sql";

// Adds runs that are to come back before they begin.
constexpr std::string_view kVersion17 = R"sql(
ALTER TABLE job ADD COLUMN withdrawal BLOB;  -- a Withdrawal; null: its run is not to come back
ALTER TABLE job ADD COLUMN returned_runs INTEGER NOT NULL DEFAULT 0;  -- runs that came back
)sql";

// Adds the use of ended runs by days.
constexpr std::string_view kVersion18 = R"sql(
CREATE TABLE day_usage (
  day INTEGER NOT NULL,  -- since 1970, in UTC
  project TEXT NOT NULL,
  user TEXT NOT NULL,
  cluster TEXT NOT NULL,
  gpu_type TEXT NOT NULL,
  runs INTEGER NOT NULL,
  run_ms INTEGER NOT NULL,   -- of commands
  core_ms INTEGER NOT NULL,  -- of cores
  gpu_ms INTEGER NOT NULL,   -- of whole GPUs
  PRIMARY KEY (day, project, user, cluster, gpu_type)
) STRICT, WITHOUT ROWID;
)sql";

// Describes the steps that bring a file to the next version: first those that take a transaction
// for each part, until they answer false; then, in one transaction, SQL and what takes code.
struct Step {
  std::string_view sql;
  absl::Status (*code)(const Database& database) = nullptr;
  absl::StatusOr<bool> (*part)(const Database& database) = nullptr;
};

// Index n has the step to version n + 1. Released steps never change; new ones are added.
constexpr Step kSteps[] = {{kVersion1},
                           {kVersion2},
                           {"", RenewFingerprints},
                           {kVersion4},
                           {"", TakeOverReasons},
                           {kVersion6},
                           {kVersion7},
                           {kVersion8, nullptr, MoveSomeSpecs},
                           {kVersion9},
                           {kVersion10},
                           {kVersion11, nullptr, MoveSomeRequests},
                           {kVersion12},
                           {kVersion13},
                           {kVersion14},
                           {kVersion15},
                           {kVersion16},
                           {kVersion17},
                           {kVersion18}};
static_assert(std::size(kSteps) == kSchemaVersion);

std::string RandomInstance() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kFirstDigit = 26;
  std::random_device random;
  std::string instance;
  for (int i = 0; i < contract::kInstanceLength; ++i) {
    const int choices = i == 0 ? kFirstDigit : static_cast<int>(kLetters.size());
    instance += kLetters[std::uniform_int_distribution<int>(0, choices - 1)(random)];
  }
  return instance;
}

std::string SqlOfStep(int64_t from) {
  std::string sql = fmt::format("BEGIN IMMEDIATE; {}", kSteps[from].sql);
  if (from == 0) {
    sql += fmt::format("INSERT INTO broker VALUES (1, '{}', 0); PRAGMA application_id = {};",
                       RandomInstance(), kApplicationId);
  }
  return sql;
}

// Parts between two checkpoints, which keep the write-ahead log short.
constexpr int kPartsPerCheckpoint = 16;

absl::Status DoParts(const Database& database, const Step& step) {
  if (step.part == nullptr) return absl::OkStatus();
  for (int done = 1;; ++done) {
    if (absl::Status status = database.Execute("BEGIN IMMEDIATE"); !status.ok()) return status;
    const absl::StatusOr<bool> more = step.part(database);
    if (!more.ok()) return more.status();
    if (absl::Status status = database.Execute("COMMIT"); !status.ok()) return status;
    if (!*more) return absl::OkStatus();
    if (done % kPartsPerCheckpoint != 0) continue;
    const absl::StatusOr<int64_t> is_busy = database.QueryInt("PRAGMA wal_checkpoint(RESTART)");
    if (!is_busy.ok()) return is_busy.status();
  }
}

// A step that fails is rolled back when the database is closed.
absl::Status UpgradeFrom(const Database& database, int64_t version) {
  if (absl::Status status = AddFunctions(database); !status.ok()) return status;
  for (; version < kSchemaVersion; ++version) {
    absl::Status status = DoParts(database, kSteps[version]);
    if (status.ok()) status = database.Execute(SqlOfStep(version));
    if (status.ok() && kSteps[version].code != nullptr) status = kSteps[version].code(database);
    if (status.ok())
      status = database.Execute(fmt::format("PRAGMA user_version = {}; COMMIT;", version + 1));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CreateSchema(const Database& database) { return UpgradeFrom(database, 0); }

absl::Status CheckSchema(const Database& database) {
  absl::StatusOr<int64_t> version = database.QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  absl::StatusOr<int64_t> application = database.QueryInt("PRAGMA application_id");
  if (!application.ok()) return application.status();
  if (*application != kApplicationId || *version < 1) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "NOT_A_BROKER_DATABASE",
                           fmt::format("{} is a database of another program; choose another state "
                                       "directory",
                                       database.path()));
  }
  if (*version > kSchemaVersion) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "DATABASE_TOO_NEW",
        fmt::format("{} was written by a newer release (schema {}, this release knows {}); install "
                    "that release or a later one",
                    database.path(), *version, kSchemaVersion));
  }
  return absl::OkStatus();
}

absl::Status Migrate(const Database& database) {
  absl::StatusOr<int64_t> version = database.QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  return UpgradeFrom(database, *version);
}

}  // namespace muster::store
