#include "contract/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

namespace muster::contract {
namespace {

// Returns the fewest insertions, deletions, replacements and swaps of neighbours that turn one into
// the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

// "priorityClass", "priority-class" and "priority_class" are one name, written in several ways.
std::string PlainName(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_' && c != '-')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// Returns the candidate that begins with the name, as "memory" begins with "mem"; empty if none
// does, or several do.
std::string_view OnlyOneThatBegins(const std::string& plain,
                                   const std::vector<std::string_view>& candidates) {
  constexpr size_t kFewestLetters = 2;  // one letter says nothing
  if (plain.size() < kFewestLetters) return {};
  std::string_view found;
  for (std::string_view candidate : candidates) {
    const std::string whole = PlainName(candidate);
    if (whole == plain) return candidate;
    if (!std::string_view(whole).starts_with(plain)) continue;
    if (!found.empty()) return {};
    found = candidate;
  }
  return found;
}

}  // namespace

std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  // Longer than any name we know: not a slip, and not worth the square of its length.
  constexpr size_t kMaxName = 64;
  if (name.size() > kMaxName) return {};
  std::string_view best;
  const std::string plain = PlainName(name);
  if (const std::string_view whole = OnlyOneThatBegins(plain, candidates); !whole.empty()) {
    return whole;
  }
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = Distance(plain, PlainName(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace muster::contract
