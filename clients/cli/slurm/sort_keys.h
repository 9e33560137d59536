// The orders that users of squeue and sinfo ask for: "P,t,-p". Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SORT_KEYS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SORT_KEYS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

// A column to sort by.
struct SortKey {
  char letter = 0;
  bool descending = false;   // "-P": the greatest comes first
  bool is_clusters = false;  // "#P": in the order of the cluster's configuration
};

// "P,-i". INVALID_ARGUMENT: a letter that is not one of `letters`.
absl::StatusOr<std::vector<SortKey>> ReadSortKeys(std::string_view keys, std::string_view letters);

// A value to sort by: numbers by their size, all else as text.
struct SortValue {
  std::optional<int64_t> number;
  std::string text;
};
SortValue ToSortValue(std::string text);
// Negative: `a` comes first; 0: they are equal.
int Compare(const SortValue& a, const SortValue& b);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SORT_KEYS_H_
