#include "clients/cli/table.h"

#include <algorithm>
#include <utility>

#include "clients/cli/text.h"

namespace muster::cli {
namespace {

constexpr std::string_view kGap = "  ";

std::string_view Sequence(Colour colour) {
  switch (colour) {
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kCyan:
      return "\x1b[36m";
    case Colour::kDim:
      return "\x1b[2m";
    case Colour::kNone:
      return "";
  }
  return "";
}

}  // namespace

std::string Paint(std::string_view text, Colour colour, bool colours_on) {
  if (!colours_on || colour == Colour::kNone) return std::string(text);
  std::string painted(Sequence(colour));
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

Table::Table(std::vector<Column> columns, bool colours_on)
    : columns_(std::move(columns)), colours_on_(colours_on) {}

std::string Table::Take() {
  std::string out;
  if (widths_.empty()) {
    Row headings;
    for (const Column& column : columns_) headings.push_back({column.heading});
    rows_.insert(rows_.begin(), std::move(headings));
    for (size_t i = 0; i < columns_.size(); ++i) {
      size_t width = columns_[i].min_width;
      for (const Row& row : rows_) width = std::max(width, Width(row[i].text));
      widths_.push_back(width);
    }
  }
  for (const Row& row : rows_) Line(row, &out);
  rows_.clear();
  return out;
}

void Table::Line(const Row& row, std::string* out) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t width = Width(row[i].text);
    const std::string padding(widths_[i] > width ? widths_[i] - width : 0, ' ');
    const bool is_last = i + 1 == columns_.size();
    if (columns_[i].right) *out += padding;
    *out += Paint(row[i].text, row[i].colour, colours_on_);
    if (!columns_[i].right && !is_last) *out += padding;
    if (!is_last) *out += kGap;
  }
  // A line has no blanks at its end.
  out->erase(out->find_last_not_of(' ') + 1);
  *out += '\n';
}

}  // namespace muster::cli
