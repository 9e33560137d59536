// Small readers for what Slurm's commands print.
#ifndef MUSTER_AGENTS_SLURM_FIELDS_H_
#define MUSTER_AGENTS_SLURM_FIELDS_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster::slurm {

// Job names, comments and reasons may hold any printable character, so columns are parted by one
// that is none.
inline constexpr char kSeparator = '\x1f';

inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The lines that are not empty.
inline std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines = Split(text, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.empty(); });
  return lines;
}

// The whole text as a decimal number.
template <typename Int>
std::optional<Int> ParseNumber(std::string_view text) {
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Seconds since 1970 (SLURM_TIME_FORMAT=%s); nothing for "N/A", "Unknown", "None" and 0.
inline std::optional<absl::Time> ParseEpoch(std::string_view text) {
  const std::optional<int64_t> seconds = ParseNumber<int64_t>(text);
  if (!seconds.has_value() || *seconds <= 0) return std::nullopt;
  return absl::FromUnixSeconds(*seconds);
}

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_FIELDS_H_
