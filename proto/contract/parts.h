// Reads texts that are lists: parts between separators, and numbers.
#ifndef MUSTER_PROTO_CONTRACT_PARTS_H_
#define MUSTER_PROTO_CONTRACT_PARTS_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::contract {

// Returns the parts between the separators; an empty text has one empty part.
inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The whole text as a decimal number.
template <typename Int>
std::optional<Int> ParseNumber(std::string_view text) {
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PARTS_H_
