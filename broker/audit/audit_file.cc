#include "broker/audit/audit_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "broker/audit/chain.h"
#include "contract/text.h"

namespace muster::audit {
namespace {

constexpr int64_t kVersion = 1;
constexpr char kSchema[] = R"(
CREATE TABLE record (
  seq INTEGER PRIMARY KEY,
  micros INTEGER NOT NULL,
  user TEXT NOT NULL,
  role TEXT NOT NULL,
  credential TEXT NOT NULL,
  origin TEXT NOT NULL,
  action TEXT NOT NULL,
  jobs TEXT NOT NULL,
  target TEXT NOT NULL,
  result TEXT NOT NULL,
  left_out INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX record_by_time ON record (micros);
PRAGMA user_version = 1;
)";
constexpr std::string_view kColumns =
    "seq, micros, user, role, credential, origin, action, jobs, target, result, left_out, hash";
// Records between two looks at whether the caller still waits.
constexpr uint64_t kLookEvery = 10'000;
// Rows that one step of a retention by size removes.
constexpr uint64_t kRowsPerStep = 1000;

// The wait for another process that has the file, such as muster-broker init.
constexpr int kPatienceMillis = 10'000;

constexpr DatabaseRemedies kRemedies = {
    .full = "make room on the broker's disk, or lower audit.max_bytes",
    .damaged =
        "keep the file as evidence, move it away and start the broker again; a new log "
        "begins, and jobs are in another file",
    .disk_error = "look into the kernel's log for errors of its disk",
    .not_writable = "its user must own the directory and the file",
};

absl::StatusOr<std::unique_ptr<Database>> OpenToRead(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kRemedies});
  if (!database.ok()) return database.status();
  const absl::Status status =
      (*database)->Execute(fmt::format("PRAGMA busy_timeout = {}", kPatienceMillis));
  if (!status.ok()) return status;
  return database;
}

Record ToRecord(const Statement& row) {
  return {.seq = static_cast<uint64_t>(row.Int(0)),
          .micros = row.Int(1),
          .user = std::string(row.Text(2)),
          .role = std::string(row.Text(3)),
          .credential = std::string(row.Text(4)),
          .origin = std::string(row.Text(5)),
          .action = std::string(row.Text(6)),
          .jobs = std::string(row.Text(7)),
          .target = std::string(row.Text(8)),
          .result = std::string(row.Text(9)),
          .left_out = static_cast<uint64_t>(row.Int(10)),
          .hash = std::string(row.Blob(11))};
}

absl::StatusOr<Head> HeadOf(const Database& database) {
  absl::StatusOr<Statement> last =
      database.Prepare("SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1");
  if (!last.ok()) return last.status();
  const absl::StatusOr<bool> row = last->Start().Step();
  if (!row.ok()) return row.status();
  if (!*row) return Head{.seq = 0, .hash = kNoHash};
  return Head{.seq = static_cast<uint64_t>(last->Int(0)), .hash = std::string(last->Blob(1))};
}

// Returns the last record that the newest retention removed.
absl::StatusOr<Removed> NewestRetention(const Database& database) {
  absl::StatusOr<Statement> found =
      database.Prepare("SELECT target FROM record WHERE action = ? ORDER BY seq DESC LIMIT 1");
  if (!found.ok()) return found.status();
  const absl::StatusOr<bool> row = found->Start().Bind(kRetentionAction).Step();
  if (!row.ok()) return row.status();
  if (!*row) return Removed();
  return ReadRetentionTarget(found->Text(0));
}

bool Fits(const RecordFilter& filter, const Record& record) {
  const std::string& action = filter.action;
  const bool is_action =
      action.empty() || record.action == action ||
      (record.action.starts_with(action) && record.action.size() > action.size() &&
       record.action[action.size()] == '.');
  return is_action && (filter.user.empty() || record.user == filter.user) &&
         (filter.result.empty() || record.result == filter.result) &&
         (filter.job == 0 || HasJob(record.jobs, filter.job)) &&
         (!filter.since_micros || record.micros >= *filter.since_micros) &&
         (!filter.until_micros || record.micros < *filter.until_micros);
}

// Returns the number before the first record that is not older than the filter's time. It keeps a
// question for the last hour from reading a year.
absl::StatusOr<uint64_t> SeqBefore(const Database& database, const RecordFilter& filter) {
  if (!filter.since_micros) return filter.after_seq;
  absl::StatusOr<Statement> first =
      database.Prepare("SELECT MIN(seq) FROM record WHERE micros >= ?");
  if (!first.ok()) return first.status();
  const absl::StatusOr<bool> row = first->Start().Bind(*filter.since_micros).Step();
  if (!row.ok()) return row.status();
  if (first->IsNull(0)) return ~uint64_t{0} >> 1;
  return std::max(filter.after_seq, static_cast<uint64_t>(first->Int(0)) - 1);
}

// Follows the chain record by record.
class Verifier {
 public:
  // The first record follows what the newest retention removed.
  Verifier(const Removed& removed, const std::optional<Head>& known)
      : known_(known), previous_(removed.hash), expected_(removed.seq + 1) {}

  // False: the record does not fit, and nothing after it counts.
  bool Take(const Record& record) {
    if (record.seq != expected_) {
      return Bad(record.seq, fmt::format("record {} is missing, or was moved", expected_));
    }
    if (HashOf(previous_, record) != record.hash) {
      return Bad(record.seq,
                 fmt::format("record {} was changed, or the one before it", record.seq));
    }
    if (known_ && known_->seq == record.seq && known_->hash != record.hash) {
      return Bad(record.seq,
                 fmt::format("record {} is not the one that was noted elsewhere; the log was "
                             "written anew",
                             record.seq));
    }
    ++findings_.records;
    previous_ = record.hash;
    expected_ = record.seq + 1;
    findings_.head = {.seq = record.seq, .hash = record.hash};
    return true;
  }

  Findings Finish() {
    const uint64_t last = findings_.head.seq;
    if (findings_.bad_seq == 0 && known_ && known_->seq > last) {
      Bad(last + 1, fmt::format("record {} was noted elsewhere, and the log ends with {}; its tail "
                                "was cut off",
                                known_->seq, last));
    }
    findings_.is_intact = findings_.problem.empty();
    return std::move(findings_);
  }

 private:
  bool Bad(uint64_t seq, std::string problem) {
    findings_.bad_seq = seq;
    findings_.problem = std::move(problem);
    return false;
  }

  const std::optional<Head>& known_;
  Findings findings_;
  std::string previous_;
  uint64_t expected_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kRemedies});
  if (!database.ok()) return database.status();
  absl::Status status =
      (*database)->Execute(fmt::format("PRAGMA busy_timeout = {}; PRAGMA journal_mode = WAL; "
                                       "PRAGMA synchronous = FULL",
                                       kPatienceMillis));
  if (status.ok()) status = (*database)->MakeTables(kSchema, kVersion);
  if (!status.ok()) return status;
  std::unique_ptr<AuditFile> file(new AuditFile(*std::move(database)));
  if (status = file->Prepare(); !status.ok()) return status;
  return file;
}

absl::Status AuditFile::Prepare() {
  absl::StatusOr<Statement> insert = database_->Prepare(
      fmt::format("INSERT INTO record ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kColumns));
  if (!insert.ok()) return insert.status();
  insert_ = *std::move(insert);
  return absl::OkStatus();
}

absl::Status AuditFile::Append(absl::Span<Record> records) {
  return database_->InTransaction([&] { return AppendInTransaction(records); });
}

absl::Status AuditFile::AppendInTransaction(absl::Span<Record> records) {
  absl::StatusOr<Head> head = HeadOf(*database_);
  if (!head.ok()) return head.status();
  for (Record& record : records) {
    record.seq = head->seq + 1;
    record.hash = HashOf(head->hash, record);
    *head = {.seq = record.seq, .hash = record.hash};
    const absl::Status status = insert_.Start()
                                    .Bind(record.seq)
                                    .Bind(record.micros)
                                    .Bind(record.user)
                                    .Bind(record.role)
                                    .Bind(record.credential)
                                    .Bind(record.origin)
                                    .Bind(record.action)
                                    .Bind(record.jobs)
                                    .Bind(record.target)
                                    .Bind(record.result)
                                    .Bind(record.left_out)
                                    .BindBlob(record.hash)
                                    .Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> AuditFile::UsedBytes() const {
  const absl::StatusOr<int64_t> pages = database_->QueryInt("PRAGMA page_count");
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<int64_t> free = database_->QueryInt("PRAGMA freelist_count");
  if (!free.ok()) return free.status();
  const absl::StatusOr<int64_t> size = database_->QueryInt("PRAGMA page_size");
  if (!size.ok()) return size.status();
  return static_cast<uint64_t>((*pages - *free) * *size);
}

absl::StatusOr<uint64_t> AuditFile::Retain(int64_t before_micros, uint64_t max_bytes, uint64_t most,
                                           int64_t now_micros) {
  uint64_t removed = 0;
  const absl::Status status = database_->InTransaction([&]() -> absl::Status {
    const absl::StatusOr<uint64_t> done =
        RetainInTransaction(before_micros, max_bytes, most, now_micros);
    removed = done.value_or(0);
    return done.status();
  });
  if (!status.ok()) return status;
  return removed;
}

absl::StatusOr<uint64_t> AuditFile::RetainInTransaction(int64_t before_micros, uint64_t max_bytes,
                                                        uint64_t most, int64_t now_micros) {
  const absl::StatusOr<Head> head = ReadHead();
  if (!head.ok()) return head.status();
  const absl::StatusOr<uint64_t> used = UsedBytes();
  if (!used.ok()) return used.status();
  const absl::StatusOr<int64_t> first =
      database_->QueryInt("SELECT COALESCE(MIN(seq), 0) FROM record");
  if (!first.ok()) return first.status();
  // This record is the first that stays because of its age; a clock that was put back keeps some
  // longer.
  absl::StatusOr<Statement> young =
      database_->Prepare("SELECT MIN(seq) FROM record WHERE micros >= ?");
  if (!young.ok()) return young.status();
  const absl::StatusOr<bool> row = young->Start().Bind(before_micros).Step();
  if (!row.ok()) return row.status();
  uint64_t stays = young->IsNull(0) ? head->seq : static_cast<uint64_t>(young->Int(0));
  young->Reset();
  const auto oldest = static_cast<uint64_t>(*first);
  if (head->seq == 0) return 0;
  if (*used > max_bytes) {
    // All records have about the same size.
    const double excess = 1.0 - static_cast<double>(max_bytes) / static_cast<double>(*used);
    const auto rows = static_cast<uint64_t>(excess * static_cast<double>(head->seq - oldest + 1));
    stays = std::max(stays, oldest + rows + kRowsPerStep);
  }
  stays = std::min({stays, oldest + most, head->seq});
  if (stays <= oldest) return 0;
  absl::StatusOr<Statement> hash = database_->Prepare("SELECT hash FROM record WHERE seq = ?");
  if (!hash.ok()) return hash.status();
  const absl::StatusOr<bool> is_there = hash->Start().Bind(stays - 1).Step();
  if (!is_there.ok()) return is_there.status();
  Removed removed{.seq = stays - 1, .hash = *is_there ? std::string(hash->Blob(0)) : ""};
  hash->Reset();
  absl::StatusOr<Statement> remove = database_->Prepare("DELETE FROM record WHERE seq < ?");
  if (!remove.ok()) return remove.status();
  if (absl::Status status = remove->Start().Bind(stays).Run(); !status.ok()) return status;
  Record record{.micros = now_micros,
                .action = std::string(kRetentionAction),
                .target = RetentionTarget(removed),
                .result = "OK"};
  if (absl::Status status = AppendInTransaction({&record, 1}); !status.ok()) return status;
  return stays - oldest;
}

absl::StatusOr<Head> AuditFile::ReadHead() const { return HeadOf(*database_); }

absl::StatusOr<RecordPage> ReadRecords(const std::string& path, const RecordFilter& filter,
                                       size_t most, size_t most_read) {
  const auto database = OpenToRead(path);
  if (!database.ok()) return database.status();
  const absl::StatusOr<uint64_t> after = SeqBefore(**database, filter);
  if (!after.ok()) return after.status();
  absl::StatusOr<Statement> rows = (*database)->Prepare(
      fmt::format("SELECT {} FROM record WHERE seq > ? ORDER BY seq", kColumns));
  if (!rows.ok()) return rows.status();
  rows->Start().Bind(*after);
  RecordPage page;
  for (size_t read = 0;; ++read) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) {
      page.last_seq = 0;
      return page;
    }
    if (read == most_read || page.records.size() == most) return page;
    Record record = ToRecord(*rows);
    page.last_seq = record.seq;
    if (Fits(filter, record)) page.records.push_back(std::move(record));
  }
}

bool HasJob(std::string_view jobs, uint64_t job) {
  const char* place = jobs.data();
  const char* const end = jobs.data() + jobs.size();
  while (place != end) {
    uint64_t first = 0;
    auto [stop, error] = std::from_chars(place, end, first);
    if (error != std::errc()) return false;
    uint64_t last = first;
    if (stop != end && *stop == '-') stop = std::from_chars(stop + 1, end, last).ptr;
    if (job >= first && job <= last) return true;
    place = stop == end ? end : stop + 1;
  }
  return false;
}

absl::StatusOr<Findings> Verify(const std::string& path, const std::optional<Head>& known,
                                const std::function<bool()>& is_cancelled) {
  const auto database = OpenToRead(path);
  if (!database.ok()) return database.status();
  // One snapshot serves, so that the newest retention is that of the rows.
  if (absl::Status status = (*database)->Execute("BEGIN"); !status.ok()) return status;
  const absl::StatusOr<Removed> removed = NewestRetention(**database);
  if (!removed.ok()) return removed.status();
  if (known && known->seq <= removed->seq) {
    return absl::FailedPreconditionError(ToAbsl(
        fmt::format("record {} is older than the log, which begins after {}; name a newer one",
                    known->seq, removed->seq)));
  }
  absl::StatusOr<Statement> rows =
      (*database)->Prepare(fmt::format("SELECT {} FROM record ORDER BY seq", kColumns));
  if (!rows.ok()) return rows.status();
  Verifier verifier(*removed, known);
  rows->Start();
  for (uint64_t read = 0;; ++read) {
    if (read % kLookEvery == 0 && is_cancelled()) {
      return absl::CancelledError("nobody waits for the answer any more");
    }
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row || !verifier.Take(ToRecord(*rows))) return verifier.Finish();
  }
}

}  // namespace muster::audit
