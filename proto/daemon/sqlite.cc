#include "daemon/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster {
namespace {

// SQLite gives its other files the mode of this one. An error here is met, and named, by SQLite
// when it opens the file.
void MakeForOwnerOnly(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  static_cast<void>(fchmod(fd, 0600));  // it may be there already, made by an older release
  close(fd);
}

// SQLite reports a full disk under the files beside the database as a disk error.
bool IsForWantOfSpace(int code, sqlite3* handle) {
  if ((code & 0xff) != SQLITE_IOERR || handle == nullptr) return false;
  const int error = sqlite3_system_errno(handle);
  return error == ENOSPC || error == EDQUOT;
}

}  // namespace

Statement& Statement::Start() {
  sqlite3_reset(handle_.get());
  next_parameter_ = 1;
  bind_error_ = SQLITE_OK;
  return *this;
}

Statement& Statement::Bind(int64_t value) {
  Check(sqlite3_bind_int64(handle_.get(), next_parameter_++, value));
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  // A null pointer would bind NULL, not the empty text.
  const char* data = text.data() != nullptr ? text.data() : "";
  Check(sqlite3_bind_text64(handle_.get(), next_parameter_++, data, text.size(), SQLITE_STATIC,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBlob(std::string_view bytes) {
  const char* data = bytes.data() != nullptr ? bytes.data() : "";
  Check(sqlite3_bind_blob64(handle_.get(), next_parameter_++, data, bytes.size(), SQLITE_STATIC));
  return *this;
}

Statement& Statement::BindReal(double value) {
  Check(sqlite3_bind_double(handle_.get(), next_parameter_++, value));
  return *this;
}

Statement& Statement::BindNull() {
  Check(sqlite3_bind_null(handle_.get(), next_parameter_++));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) return database_->ToStatus(bind_error_, "bind a value");
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  absl::Status status =
      code == SQLITE_DONE ? absl::OkStatus() : database_->ToStatus(code, "run a statement");
  sqlite3_reset(handle_.get());
  if (!status.ok()) return status;
  return false;
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = Step();
  if (row.ok() && *row) Reset();
  return row.status();
}

void Statement::Reset() { sqlite3_reset(handle_.get()); }

std::string_view Statement::Text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return {data != nullptr ? data : "",
          static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

std::string_view Statement::Blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  return {data != nullptr ? data : "",
          static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, int flags,
                                                         const Options& options) {
  // Statistics of memory, which nobody reads, take one lock of the whole process for each
  // allocation. SQLite refuses the setting if the process has used it before, and goes on as it
  // did.
  static const int without_statistics = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(without_statistics);
  if ((flags & SQLITE_OPEN_CREATE) != 0) MakeForOwnerOnly(path);
  std::unique_ptr<Database> database(new Database(path, options.remedies));
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, options.vfs);
  database->handle_.reset(handle);
  if (code != SQLITE_OK) return database->ToStatus(code, "open it");
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenWithTables(
    const std::string& path, const std::string& schema, int64_t version,
    const DatabaseRemedies& remedies) {
  auto database = Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, {.remedies = remedies});
  if (!database.ok()) return database.status();
  absl::Status status =
      (*database)->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  if (status.ok()) status = (*database)->MakeTables(schema, version);
  if (!status.ok()) return status;
  return database;
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) const {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) return ToStatus(code, fmt::format("prepare \"{}\"", sql));
  Statement statement;
  statement.handle_.reset(handle);
  statement.database_ = this;
  return statement;
}

absl::Status Database::PrepareAll(
    std::initializer_list<std::pair<Statement*, std::string_view>> statements) const {
  for (const auto& [statement, sql] : statements) {
    absl::StatusOr<Statement> prepared = Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status Database::Execute(const std::string& sql) const {
  return ToStatus(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr),
                  fmt::format("run \"{}\"", sql.substr(0, 60)));
}

absl::StatusOr<Statement> Database::FirstRow(std::string_view sql) const {
  absl::StatusOr<Statement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  absl::StatusOr<bool> row = statement->Start().Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::InternalError(ToAbsl(fmt::format("{}: \"{}\" has no row", path_, sql)));
  return statement;
}

absl::StatusOr<int64_t> Database::QueryInt(std::string_view sql) const {
  absl::StatusOr<Statement> row = FirstRow(sql);
  if (!row.ok()) return row.status();
  return row->Int(0);
}

absl::StatusOr<std::string> Database::QueryText(std::string_view sql) const {
  absl::StatusOr<Statement> row = FirstRow(sql);
  if (!row.ok()) return row.status();
  return std::string(row->Text(0));
}

absl::Status Database::InTransaction(const std::function<absl::Status()>& change) const {
  absl::Status status = Execute("BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  status = change();
  if (status.ok()) status = Execute("COMMIT");
  // SQLite has ended the transaction itself after some errors.
  if (in_transaction()) static_cast<void>(Execute("ROLLBACK"));
  return status;
}

absl::Status Database::MakeTables(const std::string& schema, int64_t version) const {
  const absl::StatusOr<int64_t> found = QueryInt("PRAGMA user_version");
  if (!found.ok()) return found.status();
  if (*found == 0) return InTransaction([&] { return Execute(schema); });
  if (*found == version) return absl::OkStatus();
  return absl::FailedPreconditionError(
      ToAbsl(fmt::format("{} is of version {} and this release knows {}; start a newer release",
                         path_, *found, version)));
}

absl::Status Database::ToStatus(int code, std::string_view doing) const {
  if (code == SQLITE_OK) return absl::OkStatus();
  const std::string_view words =
      handle_ != nullptr ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const std::string what =
      fmt::format("{}: could not {}: {} (SQLite code {})", path_, doing, words, code);
  const auto error = [&what](absl::StatusCode status, std::string_view reason,
                             std::string_view remedy) {
    return contract::Error(status, reason,
                           remedy.empty() ? what : fmt::format("{}; {}", what, remedy));
  };
  const int kind = IsForWantOfSpace(code, handle_.get()) ? SQLITE_FULL : code & 0xff;
  switch (kind) {
    case SQLITE_FULL:
      return error(absl::StatusCode::kResourceExhausted, "DISK_FULL", remedies_.full);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return error(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED", remedies_.damaged);
    case SQLITE_IOERR:
      return error(absl::StatusCode::kInternal, "DISK_ERROR", remedies_.disk_error);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return error(absl::StatusCode::kPermissionDenied, "DATABASE_NOT_WRITABLE",
                   remedies_.not_writable);
    default:
      return error(absl::StatusCode::kInternal, "DATABASE", "");
  }
}

}  // namespace muster
