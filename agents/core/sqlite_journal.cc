#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "agents/core/journal.h"
#include "contract/old_reasons.h"
#include "contract/text.h"
#include "daemon/directory_lock.h"
#include "daemon/sqlite.h"

namespace muster::agents {
namespace {

constexpr int kVersion = 1;
constexpr uint64_t kPageBytes = 4096;
// Each start may extend a journal that is full by a share of its bound: one part in so many.
constexpr uint64_t kRestartShare = 4;
// An agent that was killed in the middle of starting a process leaves a child that holds the lock
// until its exec. The exec takes milliseconds; a busy machine may need longer.
constexpr absl::Duration kLockPatience = absl::Seconds(2);
constexpr char kGiveAStateDir[] = "Give the agent a --state-dir that it may write to";
constexpr char kMoveAway[] =
    "Move the file away and start the agent again: it then looks up every active run before it "
    "launches any";

// Each version that the file goes through has one statement; user_version counts them.
constexpr const char* kMigrations[kVersion] = {R"sql(
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  cluster TEXT NOT NULL,
  journal_id TEXT NOT NULL,
  instance TEXT NOT NULL,
  broker_epoch INTEGER NOT NULL,
  next_event_sequence INTEGER NOT NULL
) STRICT;
CREATE TABLE run (
  arrival INTEGER PRIMARY KEY,
  run_key TEXT NOT NULL UNIQUE,
  assignment BLOB NOT NULL,
  state INTEGER NOT NULL,
  external_id TEXT NOT NULL,
  cancel_requested INTEGER NOT NULL,
  logs_complete INTEGER NOT NULL,
  launch_time_ns INTEGER
) STRICT;
CREATE TABLE event (
  sequence INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
)sql"};

// It has 128 random bits: two journals never have the same name.
std::string RandomId() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// Returns an error of the journal, whose message names the file, with what to do.
absl::Status About(const absl::Status& status, std::string_view remedy) {
  return absl::Status(status.code(),
                      ToAbsl(fmt::format("journal {}. {}", ToStd(status.message()), remedy)));
}

bool Parse(std::string_view bytes, google::protobuf::Message* out) {
  return out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// The directory is its owner's only: it has specs and outputs of other people's jobs.
absl::Status MakeStateDirectory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::create_directories(directory, error)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  }
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(ToAbsl(fmt::format(
      "cannot make the state directory {}: {}. {}", directory, error.message(), kGiveAStateDir)));
}

class SqliteJournal : public Journal {
 public:
  SqliteJournal(std::unique_ptr<DirectoryLock> lock, std::unique_ptr<Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}

  absl::Status Prepare(const JournalOptions& options) {
    if (absl::Status status = Migrate(); !status.ok()) return status;
    if (absl::Status status = Load(options.cluster); !status.ok()) return status;
    if (absl::Status status = PrepareStatements(); !status.ok()) return status;
    absl::StatusOr<uint64_t> used = UsedPages();
    if (!used.ok()) return used.status();
    used_pages_ = *used;
    // An agent that ended at the bound, or whose bound was lowered, gets far enough to hear what
    // the broker has acknowledged.
    const uint64_t bound = options.max_bytes / kPageBytes;
    max_pages_ = std::max(bound, used_pages_ + bound / kRestartShare);
    return absl::OkStatus();
  }

  JournalContent TakeContent() override { return std::move(content_); }

  absl::Status Commit(const std::vector<JournalChange>& changes) override {
    uint64_t used = 0;
    absl::Status status = begin_.Start().Run();
    for (const JournalChange& change : changes) {
      if (!status.ok()) break;
      status = std::visit([this](const auto& what) { return Write(what); }, change);
    }
    if (status.ok()) status = CheckBound(&used);
    if (status.ok()) status = commit_.Start().Run();
    if (status.ok()) {
      used_pages_ = used;
      return status;
    }
    // SQLite may have rolled back by itself; what matters is that nothing of this transaction
    // stays.
    if (database_->in_transaction()) {
      if (absl::Status undone = database_->Execute("ROLLBACK"); !undone.ok()) status = undone;
    }
    return About(status, RemedyOf(status));
  }

  double FilledShare() const override {
    return static_cast<double>(used_pages_) / static_cast<double>(max_pages_);
  }

 private:
  static std::string_view RemedyOf(const absl::Status& status) {
    if (absl::IsResourceExhausted(status)) {
      return "Free space on its disk: the agent goes on by itself, and takes no work until then";
    }
    if (absl::IsOutOfRange(status)) {
      return "See that the broker can be reached, and start the agent again: the journal empties "
             "as the broker acknowledges events";
    }
    return "Check the disk and start the agent again";
  }

  // Returns pages that hold something, in the transaction that is open if one is.
  absl::StatusOr<uint64_t> UsedPages() {
    uint64_t counts[2] = {};
    Statement* const statements[] = {&page_count_, &freelist_count_};
    for (int i = 0; i < 2; ++i) {
      ScopedReset reset(statements[i]);
      absl::StatusOr<bool> row = statements[i]->Start().Step();
      if (!row.ok()) return row.status();
      if (*row) counts[i] = static_cast<uint64_t>(statements[i]->Int(0));
    }
    return counts[0] - counts[1];
  }

  // SQLite's own bound (max_page_count) would look like a full disk, and could refuse the very
  // changes that make room.
  absl::Status CheckBound(uint64_t* used) {
    absl::StatusOr<uint64_t> pages = UsedPages();
    if (!pages.ok()) return pages.status();
    *used = *pages;
    if (*used <= max_pages_) return absl::OkStatus();
    return Error(absl::StatusCode::kOutOfRange,
                 fmt::format("it would grow to {} MiB, and its bound is {} MiB",
                             *used * kPageBytes >> 20, max_pages_ * kPageBytes >> 20));
  }

  absl::Status Error(absl::StatusCode code, std::string_view what) const {
    return absl::Status(code, ToAbsl(fmt::format("{}: {}", database_->path(), what)));
  }

  absl::Status Migrate() {
    // The lock keeps others out, so that no shared memory is needed.
    absl::Status status = database_->Execute(fmt::format(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = {}; PRAGMA journal_mode = WAL;"
        "PRAGMA synchronous = FULL;",
        kPageBytes));
    if (!status.ok()) return status;
    absl::StatusOr<std::string> check = database_->QueryText("PRAGMA quick_check(1)");
    if (!check.ok()) return check.status();
    if (*check != "ok") return Error(absl::StatusCode::kDataLoss, *check);
    absl::StatusOr<int64_t> version = database_->QueryInt("PRAGMA user_version");
    if (!version.ok()) return version.status();
    if (*version > kVersion) {
      return Error(absl::StatusCode::kFailedPrecondition,
                   fmt::format("it has format {}, and this agent knows formats up to {}", *version,
                               kVersion));
    }
    for (int64_t at = *version; at < kVersion; ++at) {
      status = database_->Execute(
          fmt::format("BEGIN; {} PRAGMA user_version = {}; COMMIT;", kMigrations[at], at + 1));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Load(const std::string& cluster) {
    absl::StatusOr<bool> known = LoadMeta(cluster);
    if (!known.ok()) return known.status();
    if (!*known) return CreateMeta(cluster);
    if (absl::Status status = LoadRuns(); !status.ok()) return status;
    return LoadEvents();
  }

  absl::StatusOr<bool> LoadMeta(const std::string& cluster) {
    absl::StatusOr<Statement> select = database_->Prepare(
        "SELECT cluster, journal_id, instance, broker_epoch, next_event_sequence FROM meta");
    if (!select.ok()) return select.status();
    absl::StatusOr<bool> row = select->Start().Step();
    if (!row.ok() || !*row) return row;
    if (select->Text(0) != cluster) {
      return Error(absl::StatusCode::kFailedPrecondition,
                   fmt::format("it belongs to the cluster '{}', and this agent is for '{}'",
                               select->Text(0), cluster));
    }
    content_.meta.journal_id = select->Text(1);
    content_.meta.instance = select->Text(2);
    content_.meta.broker_epoch = static_cast<uint64_t>(select->Int(3));
    content_.meta.next_event_sequence = static_cast<uint64_t>(select->Int(4));
    return true;
  }

  absl::Status CreateMeta(const std::string& cluster) {
    content_.meta.journal_id = RandomId();
    absl::StatusOr<Statement> insert =
        database_->Prepare("INSERT INTO meta VALUES (1, ?, ?, '', 0, 1)");
    if (!insert.ok()) return insert.status();
    return insert->Start().Bind(cluster).Bind(content_.meta.journal_id).Run();
  }

  absl::Status LoadRuns() {
    absl::StatusOr<Statement> select = database_->Prepare(
        "SELECT arrival, assignment, state, external_id, cancel_requested, logs_complete,"
        " launch_time_ns FROM run ORDER BY arrival");
    if (!select.ok()) return select.status();
    select->Start();
    while (true) {
      absl::StatusOr<bool> row = select->Step();
      if (!row.ok()) return row.status();
      if (!*row) return absl::OkStatus();
      JournalRun run;
      auto assignment = std::make_shared<agent::v1::Assignment>();
      run.order = static_cast<uint64_t>(select->Int(0));
      if (!Parse(select->Blob(1), assignment.get()) || !v1::RunState_IsValid(select->Int(2))) {
        return Error(absl::StatusCode::kDataLoss,
                     fmt::format("run number {} cannot be read", run.order));
      }
      run.assignment = std::move(assignment);
      run.state = static_cast<v1::RunState>(select->Int(2));
      run.external_id = select->Text(3);
      run.cancel_requested = select->Int(4) != 0;
      run.logs_complete = select->Int(5) != 0;
      if (!select->IsNull(6)) run.launch_time = absl::FromUnixNanos(select->Int(6));
      content_.runs.push_back(std::move(run));
    }
  }

  absl::Status LoadEvents() {
    absl::StatusOr<Statement> select =
        database_->Prepare("SELECT sequence, body FROM event ORDER BY sequence");
    if (!select.ok()) return select.status();
    select->Start();
    while (true) {
      absl::StatusOr<bool> row = select->Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      agent::v1::RunEvent event;
      if (!Parse(select->Blob(1), &event)) {
        return Error(absl::StatusCode::kDataLoss,
                     fmt::format("event {} cannot be read", select->Int(0)));
      }
      contract::TakeOverReason(&event);
      content_.events.push_back(std::move(event));
    }
    uint64_t next = content_.meta.next_event_sequence - content_.events.size();
    for (const agent::v1::RunEvent& event : content_.events) {
      if (event.sequence() != next++) {
        return Error(absl::StatusCode::kDataLoss, fmt::format("event {} is missing", next - 1));
      }
    }
    return absl::OkStatus();
  }

  absl::Status PrepareStatements() {
    const std::pair<Statement*, const char*> statements[] = {
        {&begin_, "BEGIN IMMEDIATE"},
        {&commit_, "COMMIT"},
        // The assignment never changes: most changes of a run write a few bytes, not its spec.
        {&update_run_,
         "UPDATE run SET state = ?, external_id = ?, cancel_requested = ?, logs_complete = ?,"
         " launch_time_ns = ? WHERE arrival = ?"},
        {&insert_run_, "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
        {&delete_run_, "DELETE FROM run WHERE run_key = ?"},
        {&insert_event_, "INSERT INTO event VALUES (?, ?)"},
        {&delete_events_, "DELETE FROM event WHERE sequence <= ?"},
        {&page_count_, "PRAGMA page_count"},
        {&freelist_count_, "PRAGMA freelist_count"},
        {&update_meta_,
         "UPDATE meta SET instance = ?, broker_epoch = ?, next_event_sequence = ? WHERE id = 1"},
    };
    for (const auto& [statement, sql] : statements) {
      absl::StatusOr<Statement> prepared = database_->Prepare(sql);
      if (!prepared.ok()) return prepared.status();
      *statement = *std::move(prepared);
    }
    return absl::OkStatus();
  }

  static void BindLaunchTime(const JournalRun& run, Statement& statement) {
    if (run.launch_time == absl::InfinitePast()) {
      statement.BindNull();
    } else {
      statement.Bind(absl::ToUnixNanos(run.launch_time));
    }
  }

  absl::Status Write(const PutRun& put) {
    const JournalRun& run = put.run;
    update_run_.Start().Bind(run.state).Bind(run.external_id).Bind(run.cancel_requested);
    update_run_.Bind(run.logs_complete);
    BindLaunchTime(run, update_run_);
    if (absl::Status status = update_run_.Bind(run.order).Run(); !status.ok()) {
      return status;
    }
    if (database_->changes() > 0) return absl::OkStatus();
    const std::string assignment = run.assignment->SerializeAsString();
    insert_run_.Start().Bind(run.order).Bind(run.assignment->run_key());
    insert_run_.BindBlob(assignment).Bind(run.state).Bind(run.external_id);
    insert_run_.Bind(run.cancel_requested).Bind(run.logs_complete);
    BindLaunchTime(run, insert_run_);
    return insert_run_.Run();
  }
  absl::Status Write(const DeleteRun& gone) { return delete_run_.Start().Bind(gone.run_key).Run(); }
  absl::Status Write(const PutEvent& put) {
    const std::string body = put.event.SerializeAsString();
    return insert_event_.Start().Bind(put.event.sequence()).BindBlob(body).Run();
  }
  absl::Status Write(const DeleteEventsUpTo& gone) {
    return delete_events_.Start().Bind(gone.sequence).Run();
  }
  absl::Status Write(const PutMeta& put) {
    update_meta_.Start().Bind(put.meta.instance).Bind(put.meta.broker_epoch);
    return update_meta_.Bind(put.meta.next_event_sequence).Run();
  }

  const std::unique_ptr<DirectoryLock> lock_;
  const std::unique_ptr<Database> database_;
  JournalContent content_;
  uint64_t used_pages_ = 0;
  uint64_t max_pages_ = 0;
  Statement begin_, commit_, update_run_, insert_run_, delete_run_, insert_event_, delete_events_,
      update_meta_, page_count_, freelist_count_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const JournalOptions& options) {
  if (absl::Status made = MakeStateDirectory(options.state_dir); !made.ok()) return made;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> lock =
      DirectoryLock::Take({.path = options.state_dir + "/lock",
                           .patience = kLockPatience,
                           .if_held = "stop that agent, or give this one another --state-dir",
                           .if_not_writable = "give the agent a --state-dir that it may write to"});
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<Database>> database = Database::Open(
      options.state_dir + "/journal.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, {});
  if (!database.ok()) return About(database.status(), kGiveAStateDir);
  auto journal = std::make_unique<SqliteJournal>(*std::move(lock), *std::move(database));
  absl::Status status = journal->Prepare(options);
  if (status.ok()) return journal;
  if (absl::IsDataLoss(status)) return About(status, kMoveAway);
  if (absl::IsFailedPrecondition(status)) {
    return About(status,
                 "Give the agent another --state-dir, or install the version that wrote it");
  }
  return About(status, "Check its disk and its permissions");
}

}  // namespace muster::agents
