#include "broker/store/page_token.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "contract/errors.h"

namespace muster::store {
namespace {

// FNV-1a: a token needs to notice another filter, not to resist an attacker, who could only list
// other jobs.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// Different for filters that differ.
void AppendText(const contract::Filter& filter, std::string* out) {
  *out +=
      fmt::format("({} {} {}:{} {}:{} {} {}", static_cast<int>(filter.kind),
                  static_cast<int>(filter.op), filter.key.size(), filter.key, filter.value.size(),
                  filter.value, static_cast<int>(filter.state), absl::ToUnixMicros(filter.time));
  for (const contract::Filter& child : filter.children) AppendText(child, out);
  *out += ')';
}

std::string Tag(std::string_view instance, const contract::Filter& filter) {
  std::string text(instance);
  AppendText(filter, &text);
  return fmt::format("{:016x}", Hash(text));
}

}  // namespace

std::string MakePageToken(std::string_view instance, const contract::Filter& filter,
                          uint64_t before) {
  return fmt::format("{:x}-{}", before, Tag(instance, filter));
}

absl::StatusOr<uint64_t> ReadPageToken(std::string_view instance, const contract::Filter& filter,
                                       std::string_view token) {
  if (token.empty()) return std::numeric_limits<uint64_t>::max();
  uint64_t before = 0;
  const char* end = token.data() + token.size();
  auto [dash, error] = std::from_chars(token.data(), end, before, 16);
  if (error == std::errc() && dash != end && *dash == '-' &&
      std::string_view(dash + 1, end) == Tag(instance, filter)) {
    return before;
  }
  return contract::BadField("page_token",
                            "is not from an answer to the same filter; begin again without it");
}

}  // namespace muster::store
