#include "clients/cli/slurm/format.h"

#include <algorithm>
#include <utility>

#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

// The bound is more than any terminal has.
constexpr size_t kMaxWidth = 1000;
// Width of a column of --Format, as Slurm's programs have it.
constexpr size_t kLongWidth = 20;
constexpr std::string_view kAll = "%all";

// Cut to a width on the terminal, without a mark, as Slurm does.
std::string_view Cut(std::string_view text, size_t width) {
  while (Width(text) > width) {
    do {
      text.remove_suffix(1);
    } while (!text.empty() && !contract::IsUtf8(text));
  }
  return text;
}

// All columns with '|' between, small letters first.
void AddAll(std::string_view letters, std::string_view whole, std::string before,
            ColumnFormat* format) {
  std::string sorted(letters);
  std::sort(sorted.begin(), sorted.end(), [](char a, char b) {
    const bool is_small = contract::IsLowerLetter(a);
    return is_small != contract::IsLowerLetter(b) ? is_small : a < b;
  });
  for (const char letter : sorted) {
    FormatField field;
    field.letter = letter;
    field.is_whole = whole.find(letter) != whole.npos;
    field.before = std::exchange(before, "|");
    format->fields.push_back(std::move(field));
  }
}

bool AreEqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char one, char other) {
    return one == other || (contract::IsLetter(one) && (one ^ other) == ('a' ^ 'A'));
  });
}

// "[.][SIZE][SUFFIX]"; gives the suffix.
std::string_view ReadSize(std::string_view text, FormatField* field) {
  if (text.starts_with('.')) {
    field->right = true;
    text.remove_prefix(1);
  }
  size_t size = 0;
  while (!text.empty() && contract::IsDigit(text.front())) {
    size = std::min(kMaxWidth, size * 10 + static_cast<size_t>(text.front() - '0'));
    text.remove_prefix(1);
  }
  // A text in place of a size leaves the column as wide as its value.
  if (size > 0 || (!field->right && !text.empty())) field->width = size;
  return text;
}

}  // namespace

bool ColumnFormat::Has(char letter) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const FormatField& field) { return field.letter == letter; });
}

std::string ColumnFormat::Lines(const std::vector<std::vector<std::string>>& rows,
                                bool has_heading) const {
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
    const bool is_heading = has_heading && &row == &rows.front();
    const size_t begin = lines.size();
    for (size_t i = 0; i < fields.size(); ++i) {
      std::string_view text = row[i];
      size_t used = Width(text);
      // A heading is cut all the same.
      const bool is_whole = widths[i] == 0 || (fields[i].is_whole && !is_heading);
      if (!is_whole && used > widths[i]) {
        text = Cut(text, widths[i]);
        used = Width(text);
      }
      const size_t padding = widths[i] > used ? widths[i] - used : 0;
      lines += fields[i].before;
      if (fields[i].right) lines.append(padding, ' ');
      lines += text;
      if (!fields[i].right) lines.append(padding, ' ');
    }
    lines += after;
    while (lines.size() > begin && lines.back() == ' ') lines.pop_back();
    lines += '\n';
  }
  return lines;
}

ColumnFormat ParseColumnFormat(std::string_view text, std::string_view letters,
                               std::string_view whole, std::vector<std::string>* unknown) {
  ColumnFormat format;
  std::string before;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      before += text[at];
      continue;
    }
    if (text.substr(at).starts_with(kAll)) {
      AddAll(letters, whole, std::exchange(before, ""), &format);
      at += kAll.size() - 1;
      continue;
    }
    const size_t begin = at;
    FormatField field;
    while (++at < text.size() && (text[at] == '.' || text[at] == '#')) {
      field.right = field.right || text[at] == '.';
      field.fits = field.fits || text[at] == '#';
    }
    for (; at < text.size() && contract::IsDigit(text[at]); ++at) {
      field.width = std::min(kMaxWidth, field.width * 10 + static_cast<size_t>(text[at] - '0'));
    }
    if (at >= text.size() || letters.find(text[at]) == letters.npos) {
      unknown->emplace_back(text.substr(begin + 1, at - begin));
      before += text.substr(begin, at - begin + 1);
      continue;
    }
    field.letter = text[at];
    field.is_whole = whole.find(field.letter) != whole.npos;
    field.before = std::exchange(before, "");
    format.fields.push_back(std::move(field));
  }
  format.after = std::move(before);
  return format;
}

ColumnFormat ParseLongFormat(std::string_view text, LongNames names,
                             std::vector<std::string>* unknown) {
  ColumnFormat format;
  std::string suffix;
  for (std::string_view word : contract::Split(text, ',')) {
    const size_t colon = std::min(word.find(':'), word.size());
    const std::string_view name = word.substr(0, colon);
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& one) {
      return AreEqualIgnoringCase(one.first, name);
    });
    if (found == names.end()) {
      unknown->emplace_back(name);
      continue;
    }
    FormatField field;
    field.letter = found->second;
    field.width = kLongWidth;
    field.before = std::exchange(suffix, "");
    if (colon < word.size()) suffix = ReadSize(word.substr(colon + 1), &field);
    format.fields.push_back(std::move(field));
  }
  format.after = std::move(suffix);
  return format;
}

}  // namespace muster::cli
