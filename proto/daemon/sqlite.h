// Makes a thin layer over SQLite: handles that free themselves, and absl::Status instead of codes.
//
// A Database and its Statements belong to one thread at a time (SQLITE_OPEN_NOMUTEX).
#ifndef MUSTER_PROTO_DAEMON_SQLITE_H_
#define MUSTER_PROTO_DAEMON_SQLITE_H_

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

class Database;

class Statement {
 public:
  Statement() = default;

  // Begins a new execution. Bind calls follow in the order of the parameters, and a bound value
  // must live until the row or the end has been read: nothing is copied.
  Statement& Start();
  Statement& Bind(int64_t value);
  Statement& Bind(uint64_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(uint32_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(bool value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(std::string_view text);
  Statement& BindBlob(std::string_view bytes);
  Statement& BindReal(double value);
  Statement& BindNull();

  // True: there is a row. False: the end; the statement can be started again.
  absl::StatusOr<bool> Step();
  // Runs a statement that gives no rows.
  absl::Status Run();
  // Ends a read early, so that it no longer holds its snapshot.
  void Reset();

  // Returns a value of the current row, valid until the next Step.
  int64_t Int(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double Real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  std::string_view Text(int column) const;
  std::string_view Blob(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  void Check(int code) {
    if (code != SQLITE_OK && bind_error_ == SQLITE_OK) bind_error_ = code;
  }

  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  const Database* database_ = nullptr;
  int next_parameter_ = 1;
  int bind_error_ = SQLITE_OK;
};

// Puts a statement back at its beginning when the scope ends, whichever way it does.
class ScopedReset {
 public:
  explicit ScopedReset(Statement* statement) : statement_(statement) {}
  ~ScopedReset() { statement_->Reset(); }
  ScopedReset(const ScopedReset&) = delete;
  ScopedReset& operator=(const ScopedReset&) = delete;

 private:
  Statement* const statement_;
};

// Sets the advice for the reader of an error, in the daemon's own words; it is appended after "; ".
// Empty: nothing is appended, and the caller gives the advice. Static storage.
struct DatabaseRemedies {
  std::string_view full;
  std::string_view damaged;
  std::string_view disk_error;
  std::string_view not_writable;
};

class Database {
 public:
  struct Options {
    DatabaseRemedies remedies;
    const char* vfs = nullptr;  // SQLite's file layer; null: the default one
  };

  // `flags` are as of sqlite3_open_v2. With SQLITE_OPEN_CREATE the file is made if it is missing,
  // and is for its owner only in any case: specs hold what others must not read.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, int flags,
                                                        const Options& options);

  // Opens a file that one process writes often, made with the tables of `schema` if it is missing:
  // with a write-ahead log, and on disk after each commit. Errors are those of MakeTables, too.
  static absl::StatusOr<std::unique_ptr<Database>> OpenWithTables(const std::string& path,
                                                                  const std::string& schema,
                                                                  int64_t version,
                                                                  const DatabaseRemedies& remedies);

  absl::StatusOr<Statement> Prepare(std::string_view sql) const;
  // Prepares each statement. Returns the first error; the statements behind it stay as they are.
  absl::Status PrepareAll(
      std::initializer_list<std::pair<Statement*, std::string_view>> statements) const;
  // Runs one or more statements without parameters and rows.
  absl::Status Execute(const std::string& sql) const;
  // Returns the first column of the first row.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql) const;
  absl::StatusOr<std::string> QueryText(std::string_view sql) const;

  // Runs the change in one transaction, which ends with it: committed if the change is OK, else
  // undone. Returns the first error.
  absl::Status InTransaction(const std::function<absl::Status()>& change) const;
  // Makes the tables of a new file, in one transaction. `schema` ends with PRAGMA user_version =
  // `version`. FAILED_PRECONDITION: the file is of another version.
  absl::Status MakeTables(const std::string& schema, int64_t version) const;

  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  // Counts the rows that the last statement changed.
  int changes() const { return sqlite3_changes(handle_.get()); }

  // OK for SQLITE_OK, else an error that names the file and the remedy:
  //   RESOURCE_EXHAUSTED: the disk is full. DATA_LOSS: the file is damaged. PERMISSION_DENIED: it
  //   cannot be opened or written. INTERNAL: anything else.
  absl::Status ToStatus(int code, std::string_view doing) const;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };

  Database(std::string path, const DatabaseRemedies& remedies)
      : path_(std::move(path)), remedies_(remedies) {}
  // Returns the statement, at its first row.
  absl::StatusOr<Statement> FirstRow(std::string_view sql) const;

  const std::string path_;
  const DatabaseRemedies remedies_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_SQLITE_H_
