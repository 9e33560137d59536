#include "broker/store/page_token.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "absl/strings/escaping.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/text.h"

namespace muster::store {
namespace {

// FNV-1a serves: a token must detect another filter, but need not resist an attacker, who could
// only list other jobs.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// Filters that differ have different texts; a filter with a time relative to now has the same text
// at any time.
void AppendText(const contract::Filter& filter, std::string* out) {
  *out +=
      fmt::format("({} {} {}:{} {}:{} {} {}", static_cast<int>(filter.kind),
                  static_cast<int>(filter.op), filter.key.size(), filter.key, filter.value.size(),
                  filter.value, filter.is_relative ? 0 : filter.number, filter.is_relative);
  for (const contract::Filter& child : filter.children) AppendText(child, out);
  *out += ')';
}

// Makes a tag from the purpose of the token and the place in it.
std::string Tag(std::string_view instance, const contract::Filter& filter,
                const contract::JobOrder& order, std::string_view place) {
  std::string text =
      fmt::format("{} {} {} {}", instance, static_cast<int>(order.field), order.descending, place);
  AppendText(filter, &text);
  return fmt::format("{:016x}", Hash(text));
}

template <typename Number>
bool Read(std::string_view text, int base, Number* out) {
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, *out, base);
  return error == std::errc() && last == end;
}

}  // namespace

std::string MakePageToken(std::string_view instance, const contract::Filter& filter,
                          const contract::JobOrder& order, const contract::JobPlace& last) {
  const std::string place = fmt::format("{:x}_{}_{}_{}", last.id, last.is_absent ? 1 : 0,
                                        last.number, absl::BytesToHexString(ToAbsl(last.text)));
  return fmt::format("{}_{}", place, Tag(instance, filter, order, place));
}

absl::StatusOr<std::optional<contract::JobPlace>> ReadPageToken(std::string_view instance,
                                                                const contract::Filter& filter,
                                                                const contract::JobOrder& order,
                                                                std::string_view token) {
  if (token.empty()) return std::nullopt;
  const std::string_view place = token.substr(0, token.rfind('_'));
  const std::vector<std::string_view> parts = contract::Split(token, '_');
  contract::JobPlace last;
  if (parts.size() == 5 && parts[4] == Tag(instance, filter, order, place) &&
      Read(parts[0], 16, &last.id) && Read(parts[2], 10, &last.number)) {
    last.is_absent = parts[1] == "1";
    last.text = absl::HexStringToBytes(ToAbsl(parts[3]));
    return last;
  }
  return contract::BadField("page_token",
                            "is not from an answer to the same filter and order; begin again "
                            "without it");
}

}  // namespace muster::store
