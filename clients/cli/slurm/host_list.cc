#include "clients/cli/slurm/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

// Digits that such a number may have; a longer one is part of the name.
constexpr size_t kMaxDigits = 9;
constexpr size_t kMaxHosts = 65536;  // names of a list; as many nodes as Slurm may have

size_t DigitsAtEnd(std::string_view name) {
  size_t digits = 0;
  while (digits < kMaxDigits && digits < name.size() &&
         contract::IsDigit(name[name.size() - 1 - digits])) {
    ++digits;
  }
  return digits;
}

// "1-3,7".
std::string Ranges(const std::set<uint64_t>& numbers, size_t width) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const uint64_t first = *at;
    uint64_t last = first;
    for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
    text += fmt::format("{}{:0{}}", text.empty() ? "" : ",", first, width);
    if (last > first) text += fmt::format("-{:0{}}", last, width);
  }
  return text;
}

// Adds the names of "PREFIX[1-3,7]SUFFIX"; false: it cannot be read.
bool AddHosts(std::string_view word, std::vector<std::string>* names) {
  const size_t open = word.find('[');
  if (open == word.npos) {
    if (!word.empty()) names->emplace_back(word);
    return word.find(']') == word.npos && names->size() <= kMaxHosts;
  }
  const size_t close = word.find(']', open);
  if (close == word.npos) return false;
  const std::string_view suffix = word.substr(close + 1);
  if (suffix.find_first_of("[]") != suffix.npos) return false;
  for (std::string_view range : contract::Split(word.substr(open + 1, close - open - 1), ',')) {
    const std::string_view begin = range.substr(0, range.find('-'));
    const std::string_view end =
        begin.size() == range.size() ? begin : range.substr(begin.size() + 1);
    if (begin.size() > kMaxDigits || end.size() > kMaxDigits) return false;
    const auto first = contract::ParseNumber<uint64_t>(begin);
    const auto last = contract::ParseNumber<uint64_t>(end);
    if (!first || !last || *last < *first || *last - *first >= kMaxHosts) return false;
    for (uint64_t i = *first; i <= *last; ++i) {
      names->push_back(fmt::format("{}{:0{}}{}", word.substr(0, open), i, begin.size(), suffix));
    }
    if (names->size() > kMaxHosts) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> HostsOf(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t open = list.find('[');
    size_t end = list.find(',');
    if (open < end) end = list.find(',', std::min(list.find(']', open), list.size()));
    end = std::min(end, list.size());
    if (!AddHosts(list.substr(0, end), &names)) return std::nullopt;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

std::string HostList(const std::vector<std::string>& names) {
  // The numbers by the name before them, and by their width if they begin with a zero.
  std::map<std::pair<std::string, size_t>, std::set<uint64_t>> groups;
  for (const std::string& name : names) {
    const size_t digits = DigitsAtEnd(name);
    const std::string number = name.substr(name.size() - digits);
    const size_t width = number.starts_with('0') ? digits : 0;
    auto& group = groups[{name.substr(0, name.size() - digits), width}];
    if (const auto value = contract::ParseNumber<uint64_t>(number)) group.insert(*value);
  }
  std::string list;
  for (const auto& [key, numbers] : groups) {
    const auto& [stem, width] = key;
    list += list.empty() ? "" : ",";
    if (numbers.empty()) {
      list += stem;
    } else if (numbers.size() == 1) {
      list += fmt::format("{}{:0{}}", stem, *numbers.begin(), width);
    } else {
      list += fmt::format("{}[{}]", stem, Ranges(numbers, width));
    }
  }
  return list;
}

}  // namespace muster::cli
