// A text file with a table: the names of its columns, then a row in each line.
#ifndef MUSTER_BROKER_REPLAY_TABLE_H_
#define MUSTER_BROKER_REPLAY_TABLE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::replay {

class Table {
 public:
  // `needed` are the columns without which nothing can be read. INVALID_ARGUMENT: one is missing,
  // or a row has another number of fields than the first line.
  static absl::StatusOr<Table> Read(std::string_view text, char separator,
                                    const std::vector<std::string_view>& needed);

  size_t rows() const { return rows_.size(); }
  // Empty: the table has no such column.
  std::string_view At(size_t row, std::string_view column) const;
  // Reads a number that is not negative; it is `missing` if empty or without a column.
  // INVALID_ARGUMENT names line, column and value.
  absl::StatusOr<double> Number(size_t row, std::string_view column, double missing) const;
  // INVALID_ARGUMENT: `why` about this value.
  absl::Status Wrong(size_t row, std::string_view column, std::string_view why) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string_view>> rows_;
  std::vector<size_t> lines_;  // number of the line of each row, from 1
};

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_TABLE_H_
