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

Table::Table(std::vector<Column> columns, const Look& look)
    : columns_(std::move(columns)), look_(look) {}

void Table::Decide() {
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].min_width;
    for (const Row& row : rows_) width = std::max(width, Width(row[i].text));
    widths_.push_back(width);
  }
  if (look_.width == 0) return;
  // The headings stay whole, and of texts enough to tell most of them apart.
  constexpr size_t kLeast = 8;
  size_t total = (columns_.size() - 1) * kGap.size();
  for (const size_t width : widths_) total += width;
  while (total > look_.width) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const size_t least = std::max(kLeast, Width(columns_[i].heading));
      if (columns_[i].right || widths_[i] <= least) continue;
      if (widest == columns_.size() || widths_[i] > widths_[widest]) widest = i;
    }
    if (widest == columns_.size()) return;
    --widths_[widest];
    --total;
  }
}

std::string Table::Take() {
  std::string out;
  if (widths_.empty()) {
    Row headings;
    for (const Column& column : columns_) headings.push_back({column.heading});
    rows_.insert(rows_.begin(), std::move(headings));
    Decide();
  }
  for (const Row& row : rows_) look_.csv ? CsvLine(row, &out) : Line(row, &out);
  rows_.clear();
  return out;
}

void Table::CsvLine(const Row& row, std::string* out) const {
  for (size_t i = 0; i < row.size(); ++i) {
    std::string text = row[i].text == "-" ? "" : row[i].text;
    if (text.find_first_of(",\"\r\n") != std::string::npos) {
      for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
        text.insert(at, 1, '"');
      text = '"' + text + '"';
    }
    *out += (i == 0 ? "" : ",") + text;
  }
  *out += '\n';
}

size_t Table::Room(size_t column, size_t taken) const {
  const bool is_last = column + 1 == columns_.size();
  if (look_.width == 0 || columns_[column].right) return std::string::npos;
  if (!is_last) return widths_[column];
  return look_.width > taken + widths_[column] ? look_.width - taken : widths_[column];
}

void Table::Line(const Row& row, std::string* out) const {
  size_t taken = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string text = CutToWidth(row[i].text, Room(i, taken));
    const size_t width = Width(text);
    const std::string padding(widths_[i] > width ? widths_[i] - width : 0, ' ');
    const bool is_last = i + 1 == columns_.size();
    if (columns_[i].right) *out += padding;
    *out += Paint(text, row[i].colour, look_.colours);
    if (!columns_[i].right && !is_last) *out += padding;
    if (!is_last) *out += kGap;
    taken += std::max(width, widths_[i]) + kGap.size();
  }
  // A line has no blanks at its end.
  out->erase(out->find_last_not_of(' ') + 1);
  *out += '\n';
}

}  // namespace muster::cli
