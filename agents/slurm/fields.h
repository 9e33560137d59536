// Small readers for what Slurm's commands print.
#ifndef MUSTER_AGENTS_SLURM_FIELDS_H_
#define MUSTER_AGENTS_SLURM_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "contract/parts.h"
#include "contract/text.h"

namespace muster::slurm {

// Job names, comments and reasons may hold any printable character, so columns are parted by one
// that is none.
inline constexpr char kSeparator = '\x1f';

using contract::ParseNumber;
using contract::Split;

// Returns the lines that are not empty.
inline std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines = Split(text, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.empty(); });
  return lines;
}

inline std::string LowerCase(std::string_view text) { return absl::AsciiStrToLower(ToAbsl(text)); }
inline std::string UpperCase(std::string_view text) { return absl::AsciiStrToUpper(ToAbsl(text)); }

// Seconds since 1970 (SLURM_TIME_FORMAT=%s); nothing for "N/A", "Unknown", "None" and 0.
inline std::optional<absl::Time> ParseEpoch(std::string_view text) {
  const std::optional<int64_t> seconds = ParseNumber<int64_t>(text);
  if (!seconds.has_value() || *seconds <= 0) return std::nullopt;
  return absl::FromUnixSeconds(*seconds);
}

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_FIELDS_H_
