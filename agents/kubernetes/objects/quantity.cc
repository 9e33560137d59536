#include "agents/kubernetes/objects/quantity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "contract/text.h"

namespace muster::kubernetes {
namespace {

// This many digits of a number are kept; further ones only round it up. With the greatest power of
// two behind it (2^60) it stays below 2^128.
constexpr int kMaxDigits = 19;
// Beyond this every number is 0 or too large.
constexpr int kMaxExponent = 100;

// mantissa x 2^twos x 10^tens.
struct Scale {
  int tens = 0;
  int twos = 0;
};

std::optional<Scale> ScaleOf(std::string_view suffix) {
  constexpr std::array<std::pair<std::string_view, Scale>, 16> kScales = {{
      {"", {0, 0}},
      {"n", {-9, 0}},
      {"u", {-6, 0}},
      {"m", {-3, 0}},
      {"k", {3, 0}},
      {"M", {6, 0}},
      {"G", {9, 0}},
      {"T", {12, 0}},
      {"P", {15, 0}},
      {"E", {18, 0}},
      {"Ki", {0, 10}},
      {"Mi", {0, 20}},
      {"Gi", {0, 30}},
      {"Ti", {0, 40}},
      {"Pi", {0, 50}},
      {"Ei", {0, 60}},
  }};
  for (const auto& [name, scale] : kScales) {
    if (name == suffix) return scale;
  }
  int exponent = 0;
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  if (!absl::SimpleAtoi(ToAbsl(suffix.substr(1)), &exponent)) return std::nullopt;
  return Scale{std::clamp(exponent, -kMaxExponent, kMaxExponent), 0};
}

// A number's digits, with the power of ten that they lack.
struct Digits {
  absl::uint128 mantissa = 0;
  int tens = 0;
  bool has_more = false;  // digits that are not 0 were left out
  size_t count = 0;       // of digits read
};

// Takes the number from the front of `text`.
Digits TakeDigits(std::string_view* text) {
  Digits digits;
  int kept = 0;
  bool in_fraction = false;
  while (!text->empty()) {
    const char c = text->front();
    if (c == '.' && !in_fraction) {
      in_fraction = true;
    } else if (c >= '0' && c <= '9') {
      ++digits.count;
      if (kept < kMaxDigits) {
        digits.mantissa = digits.mantissa * 10 + static_cast<unsigned>(c - '0');
        if (digits.mantissa != 0) ++kept;
        if (in_fraction) --digits.tens;
      } else {
        digits.has_more = digits.has_more || c != '0';
        if (!in_fraction) ++digits.tens;
      }
    } else {
      break;
    }
    text->remove_prefix(1);
  }
  return digits;
}

std::optional<int64_t> Parse(std::string_view text, int tens) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const Digits digits = TakeDigits(&text);
  const std::optional<Scale> scale = ScaleOf(text);
  if (digits.count == 0 || !scale.has_value()) return std::nullopt;
  absl::uint128 value = digits.mantissa << scale->twos;
  tens += digits.tens + scale->tens;
  bool is_rounded = digits.has_more;
  for (; tens > 0 && value != 0 && value <= kMost; --tens) value *= 10;
  for (; tens < 0 && value != 0; ++tens) {
    is_rounded = is_rounded || value % 10 != 0;
    value /= 10;
  }
  if (is_rounded) value += 1;
  const auto amount =
      static_cast<int64_t>(static_cast<uint64_t>(std::min(value, absl::uint128(kMost))));
  return is_negative ? -amount : amount;
}

}  // namespace

std::optional<int64_t> ParseQuantity(std::string_view text) { return Parse(text, 0); }
std::optional<int64_t> ParseMilliQuantity(std::string_view text) { return Parse(text, 3); }

}  // namespace muster::kubernetes
