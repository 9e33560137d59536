#include "broker/auth/token_file.h"

namespace muster::auth {
namespace {

constexpr int64_t kVersion = 1;
constexpr char kSchema[] = R"(
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  digest BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  user TEXT NOT NULL,
  role INTEGER NOT NULL,
  maker INTEGER NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  used INTEGER NOT NULL,
  revoked INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
)";

constexpr DatabaseRemedies kRemedies = {
    .full = "free space on its disk and try again",
    .damaged =
        "the file is damaged: put back a backup, or move it away and make all tokens anew; jobs "
        "are in another file",
    .disk_error = "look into the kernel's log for errors of its disk",
    .not_writable = "its user must own the directory and the file",
};

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kRemedies});
  if (!database.ok()) return database.status();
  // The file is small and seldom written, so that it needs no write-ahead log.
  absl::Status status = (*database)->Execute(
      "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON");
  if (status.ok()) status = (*database)->MakeTables(kSchema, kVersion);
  if (!status.ok()) return status;
  auto file = std::unique_ptr<TokenFile>(new TokenFile(*std::move(database)));
  if (status = file->Prepare(); !status.ok()) return status;
  return file;
}

absl::Status TokenFile::Prepare() {
  return database_->PrepareAll({
      {&load_,
       "SELECT id, digest, name, user, role, maker, created, expires, used, revoked FROM tokens "
       "ORDER BY id"},
      {&insert_,
       "INSERT INTO tokens (digest, name, user, role, maker, created, expires, used, revoked) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&remove_, "DELETE FROM tokens WHERE id = ?"},
      {&revoke_, "UPDATE tokens SET revoked = ? WHERE id = ?"},
      {&note_use_, "UPDATE tokens SET used = ? WHERE id = ?"},
  });
}

absl::StatusOr<std::vector<TokenRecord>> TokenFile::Load() {
  std::vector<TokenRecord> records;
  const ScopedReset reset(&load_);
  load_.Start();
  while (true) {
    const absl::StatusOr<bool> row = load_.Step();
    if (!row.ok()) return row.status();
    if (!*row) return records;
    TokenRecord& record = records.emplace_back();
    record.id = static_cast<uint64_t>(load_.Int(0));
    record.digest = load_.Blob(1);
    record.name = load_.Text(2);
    record.user = load_.Text(3);
    record.role = static_cast<Role>(load_.Int(4));
    record.maker = static_cast<uint64_t>(load_.Int(5));
    record.created_micros = load_.Int(6);
    record.expires_micros = load_.Int(7);
    record.used_micros = load_.Int(8);
    record.revoked_micros = load_.Int(9);
  }
}

absl::StatusOr<uint64_t> TokenFile::Replace(const std::vector<uint64_t>& gone,
                                            const TokenRecord& added) {
  uint64_t id = 0;
  const absl::Status status = database_->InTransaction([&]() -> absl::Status {
    for (const uint64_t old : gone) {
      if (absl::Status removed = remove_.Start().Bind(old).Run(); !removed.ok()) return removed;
    }
    insert_.Start().BindBlob(added.digest).Bind(added.name).Bind(added.user);
    insert_.Bind(static_cast<int>(added.role)).Bind(added.maker).Bind(added.created_micros);
    insert_.Bind(added.expires_micros).Bind(added.used_micros).Bind(added.revoked_micros);
    if (absl::Status inserted = insert_.Run(); !inserted.ok()) return inserted;
    id = static_cast<uint64_t>(sqlite3_last_insert_rowid(database_->handle()));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return id;
}

absl::Status TokenFile::Revoke(const std::vector<uint64_t>& ids, int64_t micros) {
  return database_->InTransaction([&]() -> absl::Status {
    for (const uint64_t id : ids) {
      if (absl::Status done = revoke_.Start().Bind(micros).Bind(id).Run(); !done.ok()) return done;
    }
    return absl::OkStatus();
  });
}

absl::Status TokenFile::NoteUses(const std::vector<std::pair<uint64_t, int64_t>>& uses) {
  return database_->InTransaction([&]() -> absl::Status {
    for (const auto& [id, micros] : uses) {
      if (absl::Status done = note_use_.Start().Bind(micros).Bind(id).Run(); !done.ok())
        return done;
    }
    return absl::OkStatus();
  });
}

}  // namespace muster::auth
