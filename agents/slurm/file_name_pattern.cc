#include "agents/slurm/file_name_pattern.h"

#include <algorithm>

#include "contract/characters.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr size_t kMaxWidth = 10;
// NO_VAL, which Slurm prints for a job that is no task of an array.
constexpr uint32_t kNoTask = 4294967294;

std::string Padded(uint64_t number, size_t width) { return fmt::format("{:0{}}", number, width); }

// Nothing for a letter that has no meaning.
std::optional<std::string> ValueOf(char letter, size_t width, const FileNameValues& values) {
  switch (letter) {
    case '%':
      return width == 0 ? std::optional<std::string>("%") : std::nullopt;
    case 'j':
    case 'J':
      return Padded(values.job_id, width);
    case 'A':
      return Padded(values.array_job_id.value_or(values.job_id), width);
    case 'a':
      return Padded(values.array_task.value_or(kNoTask), width);
    case 's':
      return "batch";
    case 'N':
      return values.node;
    case 'n':
    case 't':
      return Padded(0, width);
    case 'u':
      return values.user;
    case 'x':
      return values.job_name;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string ExpandFileName(std::string_view pattern, const FileNameValues& values) {
  std::string name;
  if (pattern.find('\\') != pattern.npos) {
    std::copy_if(pattern.begin(), pattern.end(), std::back_inserter(name),
                 [](char c) { return c != '\\'; });
    return name;
  }
  for (size_t at = 0; at < pattern.size(); ++at) {
    size_t end = at + 1;
    size_t width = 0;
    while (pattern[at] == '%' && end < pattern.size() && contract::IsDigit(pattern[end])) {
      width = std::min(width * 10 + static_cast<size_t>(pattern[end++] - '0'), kMaxWidth);
    }
    if (pattern[at] == '%' && end < pattern.size()) {
      if (const auto value = ValueOf(pattern[end], width, values); value.has_value()) {
        name += *value;
        at = end;
        continue;
      }
      if (end > at + 1) continue;  // Slurm drops the '%' alone
    }
    name += pattern[at];
  }
  return name;
}

}  // namespace muster::slurm
