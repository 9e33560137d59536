// SQLite with statuses instead of codes: as much of it as the journal needs.
//
// Not thread-safe; one owner.
#ifndef MUSTER_AGENTS_CORE_SQLITE_H_
#define MUSTER_AGENTS_CORE_SQLITE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::agent {

// One prepared statement. Values are bound in order; texts must live until the step.
class Statement {
 public:
  Statement() = default;

  Statement& Bind(int64_t value);
  Statement& Bind(std::string_view text);
  Statement& BindBlob(std::string_view bytes);
  Statement& BindNull();
  // Runs a statement that returns no rows, and makes it ready for the next use.
  absl::Status Run();
  // True: there is a row to read. False: there are no more, and the statement is ready for the next
  // use.
  absl::StatusOr<bool> Next();

  int64_t Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  bool IsNull(int column) const;
  std::string Text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  absl::Status Reset(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class Database {
 public:
  // Makes the file if it is missing. It is for its owner only, as specs hold what others must not
  // read.
  static absl::StatusOr<Database> Open(const std::string& path);

  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // The first column of the first row of a query.
  absl::StatusOr<std::string> Query(std::string_view sql);
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  // Rows that the last statement changed.
  int changes() const { return sqlite3_changes(handle_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };

  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_SQLITE_H_
