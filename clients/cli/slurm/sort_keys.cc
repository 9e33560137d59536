#include "clients/cli/slurm/sort_keys.h"

#include <fmt/format.h>

#include <utility>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {

absl::StatusOr<std::vector<SortKey>> ReadSortKeys(std::string_view keys, std::string_view letters) {
  std::vector<SortKey> read;
  for (std::string_view key : contract::Split(keys, ',')) {
    SortKey one;
    one.descending = key.starts_with('-');
    one.is_clusters = key.starts_with('#');
    if (one.descending || one.is_clusters || key.starts_with('+')) key.remove_prefix(1);
    if (key.size() != 1 || letters.find(key[0]) == letters.npos) {
      return absl::InvalidArgumentError(
          fmt::format("--sort: {} is not a column that muster has; it has: {}",
                      contract::Quoted(key), letters));
    }
    one.letter = key[0];
    read.push_back(one);
  }
  return read;
}

SortValue ToSortValue(std::string text) {
  const auto number = contract::ParseNumber<int64_t>(text);
  return {number, std::move(text)};
}

int Compare(const SortValue& a, const SortValue& b) {
  if (a.number.has_value() && b.number.has_value())
    return *a.number < *b.number ? -1 : *a.number > *b.number ? 1 : 0;
  return a.text.compare(b.text);
}

}  // namespace muster::cli
