#include "broker/store/sqlite/row_inserter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::store {

absl::Status RowInserter::Prepare(const Database& database, std::string_view table,
                                  std::string_view values) {
  for (Sized& sized : statements_) {
    // With OR ROLLBACK, SQLite keeps no copy of each page to undo this statement alone.
    const std::vector<std::string> rows(sized.rows, fmt::format("({})", values));
    absl::StatusOr<Statement> prepared = database.Prepare(
        fmt::format("INSERT OR ROLLBACK INTO {} VALUES {}", table, fmt::join(rows, ", ")));
    if (!prepared.ok()) return prepared.status();
    sized.statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status RowInserter::Insert(size_t rows,
                                 const std::function<void(size_t row, Statement& to)>& bind) {
  size_t row = 0;
  for (Sized& sized : statements_) {
    while (rows - row >= sized.rows) {
      sized.statement.Start();
      for (const size_t end = row + sized.rows; row < end; ++row) bind(row, sized.statement);
      if (absl::Status status = sized.statement.Run(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::store
