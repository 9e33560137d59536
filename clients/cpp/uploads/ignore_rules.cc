#include "clients/cpp/uploads/ignore_rules.h"

#include <algorithm>
#include <utility>

namespace muster::client {

void IgnoreRules::Add(std::string_view text, const std::string& base) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto pattern = IgnorePattern::Parse(line)) rules_.push_back({base, *std::move(pattern)});
  }
}

bool IgnoreRules::LeavesOut(std::string_view path, bool is_directory) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (!path.starts_with(rule->base)) continue;
    if (rule->pattern.Matches(path.substr(rule->base.size()), is_directory))
      return !rule->pattern.is_negated();
  }
  return false;
}

}  // namespace muster::client
