#include "broker/replay/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "contract/text.h"

namespace muster::replay {
namespace {

std::vector<std::string_view> Split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (const absl::string_view field : absl::StrSplit(ToAbsl(line), separator)) {
    fields.emplace_back(field.data(), field.size());
  }
  return fields;
}

}  // namespace

absl::StatusOr<Table> Table::Read(std::string_view text, char separator,
                                  const std::vector<std::string_view>& needed) {
  Table table;
  size_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    std::vector<std::string_view> fields = Split(line, separator);
    if (table.columns_.empty()) {
      table.columns_.assign(fields.begin(), fields.end());
      continue;
    }
    if (fields.size() != table.columns_.size()) {
      return absl::InvalidArgumentError(
          fmt::format("line {} has {} fields, and the first line names {} columns; fields are "
                      "separated by '{}', and quotes are not read",
                      number, fields.size(), table.columns_.size(), separator));
    }
    table.rows_.push_back(std::move(fields));
    table.lines_.push_back(number);
  }
  for (const std::string_view column : needed) {
    if (std::find(table.columns_.begin(), table.columns_.end(), column) != table.columns_.end())
      continue;
    return absl::InvalidArgumentError(
        fmt::format("the first line names no column \"{}\"; it must name the columns, separated by "
                    "'{}'",
                    column, separator));
  }
  return table;
}

std::string_view Table::At(size_t row, std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return {};
  return rows_[row][static_cast<size_t>(found - columns_.begin())];
}

absl::StatusOr<double> Table::Number(size_t row, std::string_view column, double missing) const {
  const std::string_view text = At(row, column);
  if (text.empty()) return missing;
  double number = 0;
  if (!absl::SimpleAtod(ToAbsl(text), &number) || !(number >= 0) || number > 1e15)
    return Wrong(row, column, "a number from 0 to 1e15 works");
  return number;
}

absl::Status Table::Wrong(size_t row, std::string_view column, std::string_view why) const {
  return absl::InvalidArgumentError(
      fmt::format("line {}: {} is \"{}\"; {}", lines_[row], column, At(row, column), why));
}

}  // namespace muster::replay
