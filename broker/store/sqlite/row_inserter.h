// Inserts many rows into a table by few statements. A statement opens a cursor for the table and
// for each of its indexes, which costs as much as the rows of some jobs.
#ifndef MUSTER_BROKER_STORE_SQLITE_ROW_INSERTER_H_
#define MUSTER_BROKER_STORE_SQLITE_ROW_INSERTER_H_

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

class RowInserter {
 public:
  // The most rows of one statement.
  static constexpr size_t kMaxRows = 16;

  // `table` is its name and columns. `values`: those of a row, with a `?` for each that is bound.
  absl::Status Prepare(const Database& database, std::string_view table, std::string_view values);

  // Inserts `rows` rows. `bind` binds the values of one of them; they must live until their
  // statement has run, which is after kMaxRows more calls at most. A conflict rolls the transaction
  // back; after any error, the transaction must not be committed.
  absl::Status Insert(size_t rows, const std::function<void(size_t row, Statement& to)>& bind);

 private:
  struct Sized {
    size_t rows;
    Statement statement;
  };
  std::array<Sized, 3> statements_{{{kMaxRows, {}}, {4, {}}, {1, {}}}};
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_ROW_INSERTER_H_
