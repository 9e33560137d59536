#include "broker/secrets/secret_file.h"

namespace muster::secrets {
namespace {

constexpr int64_t kVersion = 1;
constexpr char kSchema[] = R"(
CREATE TABLE secrets (
  kind INTEGER NOT NULL,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  key_id TEXT NOT NULL,
  sealed BLOB NOT NULL,
  size INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  for_one_job INTEGER NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY (kind, owner, name)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
)";

constexpr DatabaseRemedies kRemedies = {
    .full = "free space on its disk and try again",
    .damaged = "the file is damaged: put back a backup, or move it away and set all secrets anew",
    .disk_error = "look into the kernel's log for errors of its disk",
    .not_writable = "its user must own the directory and the file",
};

Id IdIn(const Statement& row) {
  return {static_cast<OwnerKind>(row.Int(0)), std::string(row.Text(1)), std::string(row.Text(2))};
}

void BindId(const Id& id, Statement* statement) {
  statement->Bind(static_cast<int>(id.kind)).Bind(id.owner).Bind(id.name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SecretFile>> SecretFile::Open(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kRemedies});
  if (!database.ok()) return database.status();
  // The file is small and seldom written, so that it needs no write-ahead log.
  absl::Status status = (*database)->Execute(
      "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON");
  if (status.ok()) status = (*database)->MakeTables(kSchema, kVersion);
  if (!status.ok()) return status;
  auto file = std::unique_ptr<SecretFile>(new SecretFile(*std::move(database)));
  if (status = file->Prepare(); !status.ok()) return status;
  return file;
}

absl::Status SecretFile::Prepare() {
  return database_->PrepareAll({
      {&load_,
       "SELECT kind, owner, name, size, created, updated, for_one_job, job FROM secrets "
       "ORDER BY kind, owner, name"},
      {&put_, "INSERT OR REPLACE INTO secrets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&set_job_, "UPDATE secrets SET job = ? WHERE kind = ? AND owner = ? AND name = ?"},
      {&remove_, "DELETE FROM secrets WHERE kind = ? AND owner = ? AND name = ?"},
      {&read_, "SELECT key_id, sealed FROM secrets WHERE kind = ? AND owner = ? AND name = ?"},
      {&count_others_, "SELECT count(*) FROM secrets WHERE key_id <> ?"},
      {&others_, "SELECT kind, owner, name, key_id, sealed FROM secrets WHERE key_id <> ? LIMIT 1"},
      {&reseal_,
       "UPDATE secrets SET key_id = ?, sealed = ? WHERE kind = ? AND owner = ? AND name = ?"},
  });
}

absl::StatusOr<std::vector<Record>> SecretFile::Load() {
  std::vector<Record> records;
  const ScopedReset reset(&load_);
  load_.Start();
  while (true) {
    const absl::StatusOr<bool> row = load_.Step();
    if (!row.ok()) return row.status();
    if (!*row) return records;
    Record& record = records.emplace_back();
    record.id = IdIn(load_);
    record.size_bytes = static_cast<uint32_t>(load_.Int(3));
    record.created_micros = load_.Int(4);
    record.updated_micros = load_.Int(5);
    record.for_one_job = load_.Int(6) != 0;
    record.job = static_cast<uint64_t>(load_.Int(7));
  }
}

absl::Status SecretFile::Put(const Record& record, const Sealed& sealed) {
  BindId(record.id, &put_.Start());
  put_.Bind(sealed.key_id).BindBlob(sealed.bytes).Bind(record.size_bytes);
  put_.Bind(record.created_micros).Bind(record.updated_micros);
  return put_.Bind(record.for_one_job).Bind(record.job).Run();
}

absl::Status SecretFile::SetJob(const Id& id, uint64_t job) {
  BindId(id, &set_job_.Start().Bind(job));
  return set_job_.Run();
}

absl::Status SecretFile::Remove(const Id& id) {
  BindId(id, &remove_.Start());
  return remove_.Run();
}

absl::StatusOr<Sealed> SecretFile::Read(const Id& id) {
  const ScopedReset reset(&read_);
  BindId(id, &read_.Start());
  const absl::StatusOr<bool> row = read_.Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError("there is no such secret");
  return Sealed{std::string(read_.Text(0)), std::string(read_.Blob(1))};
}

absl::StatusOr<int64_t> SecretFile::CountOthers(const std::string& key_id) {
  const ScopedReset reset(&count_others_);
  const absl::StatusOr<bool> row = count_others_.Start().Bind(key_id).Step();
  if (!row.ok()) return row.status();
  return count_others_.Int(0);
}

absl::Status SecretFile::Reseal(
    const std::string& key_id,
    const std::function<absl::StatusOr<Sealed>(const Id&, const Sealed&)>& seal) {
  return database_->InTransaction([&]() -> absl::Status {
    while (true) {
      Id id;
      Sealed old;
      {
        const ScopedReset reset(&others_);
        const absl::StatusOr<bool> row = others_.Start().Bind(key_id).Step();
        if (!row.ok()) return row.status();
        if (!*row) return absl::OkStatus();
        id = IdIn(others_);
        old = {std::string(others_.Text(3)), std::string(others_.Blob(4))};
      }
      const absl::StatusOr<Sealed> sealed = seal(id, old);
      if (!sealed.ok()) return sealed.status();
      reseal_.Start().Bind(sealed->key_id).BindBlob(sealed->bytes);
      BindId(id, &reseal_);
      if (absl::Status done = reseal_.Run(); !done.ok()) return done;
    }
  });
}

}  // namespace muster::secrets
