#include "agents/core/sqlite.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {
namespace {

absl::Status ErrorOf(sqlite3* handle, int code) {
  const std::string text =
      fmt::format("SQLite: {} ({})", handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code),
                  handle ? sqlite3_extended_errcode(handle) : code);
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

// SQLite gives its other files the mode of this one. What goes wrong here, it meets and names.
void MakeForOwnerOnly(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  static_cast<void>(fchmod(fd, 0600));  // it may be there already, and someone else's
  close(fd);
}

}  // namespace

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), ++bound_, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::BindBlob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::BindNull() {
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = Next();
  if (!row.ok()) return row.status();
  return *row ? Reset(SQLITE_OK) : absl::OkStatus();
}

absl::StatusOr<bool> Statement::Next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (absl::Status status = Reset(code == SQLITE_DONE ? SQLITE_OK : code); !status.ok()) {
    return status;
  }
  return false;
}

absl::Status Statement::Reset(int code) {
  absl::Status status;
  if (code != SQLITE_OK) status = ErrorOf(sqlite3_db_handle(statement_.get()), code);
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
  return status;
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string Statement::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes ? std::string(static_cast<const char*>(bytes), size) : std::string();
}

absl::StatusOr<Database> Database::Open(const std::string& path) {
  MakeForOwnerOnly(path);
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return ErrorOf(handle, code);
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorOf(handle_.get(), code);
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return ErrorOf(handle_.get(), code);
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

absl::StatusOr<std::string> Database::Query(std::string_view sql) {
  absl::StatusOr<Statement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  absl::StatusOr<bool> row = statement->Next();
  if (!row.ok()) return row.status();
  return *row ? statement->Text(0) : std::string();
}

}  // namespace muster::agent
