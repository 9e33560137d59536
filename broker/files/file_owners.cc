#include "broker/files/file_owners.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "contract/text.h"

namespace muster::files {
namespace {

constexpr int64_t kVersion = 1;

constexpr DatabaseRemedies kRemedies = {
    .full = "make room on the broker's disk",
    .damaged = "stop the broker and remove the file: people then upload their files again",
    .disk_error = "look at the disk",
    .not_writable = "let the broker's user write it"};

constexpr char kSchema[] = R"(
CREATE TABLE owner (
  sha256 BLOB NOT NULL,
  owner BLOB NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (sha256, owner)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
)";

// The digest is one: callers have checked it.
std::string BytesOf(const std::string& sha256) { return absl::HexStringToBytes(sha256); }

}  // namespace

absl::StatusOr<std::unique_ptr<FileOwners>> FileOwners::Open(const std::string& path) {
  auto database = Database::OpenWithTables(path, kSchema, kVersion, kRemedies);
  if (!database.ok()) return database.status();
  auto reader = Database::Open(path, SQLITE_OPEN_READONLY, {.remedies = kRemedies});
  if (!reader.ok()) return reader.status();
  // The other connection locks this one out only while it recovers the file.
  if (absl::Status status = (*reader)->Execute("PRAGMA busy_timeout = 5000"); !status.ok())
    return status;
  std::unique_ptr<FileOwners> owners(new FileOwners(*std::move(database), *std::move(reader)));
  if (absl::Status status = owners->Prepare(); !status.ok()) return status;
  return owners;
}

absl::Status FileOwners::Prepare() {
  {
    const MutexLock lock(reader_mutex_);
    absl::Status status = reader_->PrepareAll(
        {{&find_, "SELECT owner FROM owner WHERE sha256 = ?"},
         {&next_, "SELECT DISTINCT sha256 FROM owner WHERE sha256 > ? ORDER BY sha256 LIMIT ?"}});
    if (!status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  return database_->PrepareAll(
      {{&add_, "INSERT OR IGNORE INTO owner (sha256, owner, since) VALUES (?, ?, ?)"},
       {&drop_earliest_,
        "DELETE FROM owner WHERE sha256 = ?1 AND owner = (SELECT owner FROM owner WHERE "
        "sha256 = ?1 AND owner <> ?2 ORDER BY since LIMIT 1) "
        "AND (SELECT COUNT(*) FROM owner WHERE sha256 = ?1) > ?3"},
       {&forget_, "DELETE FROM owner WHERE sha256 = ?"}});
}

absl::StatusOr<uint32_t> FileOwners::Add(const std::vector<std::string>& sha256s,
                                         const std::string& owner, absl::Time now) {
  uint32_t added = 0;
  for (size_t begin = 0; begin < sha256s.size(); begin += kMaxFilesPerTransaction) {
    const absl::StatusOr<uint32_t> some =
        AddSome(absl::MakeConstSpan(sha256s).subspan(begin, kMaxFilesPerTransaction), owner, now);
    if (!some.ok()) return some.status();
    added += *some;
  }
  return added;
}

absl::StatusOr<uint32_t> FileOwners::AddSome(absl::Span<const std::string> sha256s,
                                             const std::string& owner, absl::Time now) {
  const MutexLock lock(mutex_);
  uint32_t added = 0;
  const absl::Status done =
      database_->InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
        for (const std::string& sha256 : sha256s) {
          const std::string bytes = BytesOf(sha256);
          absl::Status status =
              add_.Start().BindBlob(bytes).BindBlob(owner).Bind(absl::ToUnixMicros(now)).Run();
          if (!status.ok()) return status;
          if (database_->changes() == 0) continue;
          ++added;
          status =
              drop_earliest_.Start().BindBlob(bytes).BindBlob(owner).Bind(kMaxOwnersPerFile).Run();
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
  if (!done.ok()) return done;
  return added;
}

absl::StatusOr<bool> FileOwners::MayKnow(const Viewer& viewer, const std::string& sha256) const {
  if (viewer.sees_all()) return true;
  const std::string bytes = BytesOf(sha256);
  const MutexLock lock(reader_mutex_);
  const ScopedReset reset(&find_);
  find_.Start().BindBlob(bytes);
  while (true) {
    const absl::StatusOr<bool> row = find_.Step();
    if (!row.ok()) return row.status();
    if (!*row) return false;
    if (viewer.IsOneOf(find_.Blob(0))) return true;
  }
}

absl::Status FileOwners::Forget(const std::vector<std::string>& sha256s) {
  if (sha256s.empty()) return absl::OkStatus();
  const MutexLock lock(mutex_);
  return database_->InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    for (const std::string& sha256 : sha256s) {
      const std::string bytes = BytesOf(sha256);
      if (absl::Status status = forget_.Start().BindBlob(bytes).Run(); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<std::string>> FileOwners::After(const std::string& sha256,
                                                           int max_files) const {
  const std::string bytes = BytesOf(sha256);
  const MutexLock lock(reader_mutex_);
  const ScopedReset reset(&next_);
  next_.Start().BindBlob(bytes).Bind(max_files);
  std::vector<std::string> all;
  while (true) {
    const absl::StatusOr<bool> row = next_.Step();
    if (!row.ok()) return row.status();
    if (!*row) return all;
    all.push_back(absl::BytesToHexString(ToAbsl(next_.Blob(0))));
  }
}

}  // namespace muster::files
