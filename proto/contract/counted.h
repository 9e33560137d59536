// Counts and lists in words, so that every sentence says "1 job" and "3 jobs", and cuts a list in
// the same way.
#ifndef MUSTER_PROTO_CONTRACT_COUNTED_H_
#define MUSTER_PROTO_CONTRACT_COUNTED_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {

// Returns "1 job" or "3 jobs"; `thing` is a noun whose plural ends in an additional s.
std::string Counted(std::integral auto count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// "is" or "are", "has" or "have": the word that goes with so many.
std::string_view WordFor(std::integral auto count, std::string_view one, std::string_view many) {
  return count == 1 ? one : many;
}

// Returns "a, b and 3 more" for the parts in `told`, of `all` that there are.
inline std::string Listed(const std::vector<std::string>& told, size_t all,
                          std::string_view separator = ", ") {
  const std::string text = fmt::format("{}", fmt::join(told, separator));
  return all > told.size() ? fmt::format("{} and {} more", text, all - told.size()) : text;
}

// Lists all parts, of which at most so many are told.
inline std::string ListedUpTo(size_t max, std::vector<std::string> parts,
                              std::string_view separator = ", ") {
  const size_t all = parts.size();
  parts.resize(std::min(all, max));
  return Listed(parts, all, separator);
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_COUNTED_H_
