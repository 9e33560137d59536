#include "clients/cli/slurm/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clients/cli/text.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

// More than any terminal has.
constexpr size_t kMaxWidth = 1000;

// Cut to a width on the terminal, without a mark, as Slurm does.
std::string Cut(const std::string& text, size_t width) {
  std::string cut = text;
  while (Width(cut) > width) {
    do {
      cut.pop_back();
    } while (!cut.empty() && !contract::IsUtf8(cut));
  }
  return cut;
}

}  // namespace

bool ColumnFormat::Has(char letter) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const FormatField& field) { return field.letter == letter; });
}

std::string ColumnFormat::Lines(const std::vector<std::vector<std::string>>& rows) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < fields.size(); ++i) {
    size_t width = fields[i].width;
    for (const auto& row : rows) {
      if (fields[i].fits) width = std::max(width, Width(row[i]));
    }
    widths.push_back(width);
  }
  std::string lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < fields.size(); ++i) {
      const std::string text = widths[i] == 0 ? row[i] : Cut(row[i], widths[i]);
      const size_t used = Width(text);
      const std::string padding(widths[i] > used ? widths[i] - used : 0, ' ');
      line += fields[i].before + (fields[i].right ? padding + text : text + padding);
    }
    line += after;
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + '\n';
  }
  return lines;
}

absl::StatusOr<ColumnFormat> ParseColumnFormat(std::string_view text, std::string_view letters) {
  ColumnFormat format;
  std::string before;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      before += text[at];
      continue;
    }
    FormatField field;
    while (++at < text.size() && (text[at] == '.' || text[at] == '#')) {
      field.right = field.right || text[at] == '.';
      field.fits = field.fits || text[at] == '#';
    }
    for (; at < text.size() && contract::IsDigit(text[at]); ++at) {
      field.width = std::min(kMaxWidth, field.width * 10 + static_cast<size_t>(text[at] - '0'));
    }
    if (at >= text.size() || letters.find(text[at]) == letters.npos) {
      return absl::InvalidArgumentError(fmt::format(
          "--format: {} is not a column that muster has; it has: {}",
          contract::Quoted(at < text.size() ? fmt::format("%{}", text[at]) : "%"), letters));
    }
    field.letter = text[at];
    field.before = std::exchange(before, "");
    format.fields.push_back(std::move(field));
  }
  format.after = std::move(before);
  if (format.fields.empty()) return absl::InvalidArgumentError("--format: it names no column");
  return format;
}

}  // namespace muster::cli
