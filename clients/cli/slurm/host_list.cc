#include "clients/cli/slurm/host_list.h"

#include <fmt/format.h>

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

}  // namespace

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
