#include "clients/cli/text.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <cstdint>

#include "contract/characters.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// Returns the code point of one character of valid UTF-8.
uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t point = first & (0x7f >> character.size());
  for (char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return point;
}

bool IsControl(uint32_t point) { return point < 0x20 || (point >= 0x7f && point < 0xa0); }

// Line and paragraph separators and the marks that change the direction of text.
bool IsLayoutMark(uint32_t point) {
  return (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0x061c;
}

// Appends one character, or one byte that belongs to none.
void AppendHarmless(std::string_view character, bool is_utf8, Keep keep, std::string* out) {
  const auto byte = static_cast<unsigned char>(character[0]);
  if (!is_utf8) {
    *out += fmt::format("\\x{:02x}", byte);
    return;
  }
  const uint32_t point = CodePoint(character);
  const bool is_kept = keep == Keep::kLayout && (byte == '\n' || byte == '\t' || byte == '\r');
  if (is_kept || !(IsControl(point) || IsLayoutMark(point))) {
    *out += character;
  } else if (byte == '\n') {
    *out += "\\n";
  } else if (byte == '\t') {
    *out += "\\t";
  } else {
    *out += point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
  }
}

// Returns the bytes of a character that begins with this one; 1 if none does.
size_t PromisedBytes(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 1;
}

// The length of the beginning of a character at the very end of the bytes.
size_t CutTail(std::string_view bytes) {
  for (size_t tail = 1; tail <= std::min<size_t>(3, bytes.size()); ++tail) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - tail]);
    if ((byte & 0xc0) == 0x80) continue;
    return PromisedBytes(byte) > tail ? tail : 0;
  }
  return 0;
}

int CharacterWidth(uint32_t point) {
  // The C library knows the widths of characters, but only under a locale of UTF-8, whatever the
  // user has set.
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (point < 0x80 || utf8 == nullptr) return 1;
  const locale_t before = uselocale(utf8);
  const int width = wcwidth(static_cast<wchar_t>(point));
  uselocale(before);
  return std::max(width, 0);
}

// Returns the bytes of the text's first characters that are ASCII and no controls: most text is
// made of these alone.
size_t PlainBytes(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
  return static_cast<size_t>(end - text.begin());
}

// The next character of a text that may hold anything.
std::string_view FirstCharacter(std::string_view text) {
  return text.substr(0, std::max<size_t>(1, contract::CharacterBytes(text)));
}

int WidthOf(std::string_view character) {
  return contract::CharacterBytes(character) == 0 ? 1 : CharacterWidth(CodePoint(character));
}

// Returns the bytes of the text's first characters that have room.
size_t BytesThatFit(std::string_view text, size_t room) {
  size_t width = 0;
  size_t bytes = 0;
  while (bytes < text.size()) {
    const std::string_view character = FirstCharacter(text.substr(bytes));
    width += static_cast<size_t>(WidthOf(character));
    if (width > room) break;
    bytes += character.size();
  }
  return bytes;
}

}  // namespace

std::string Harmless(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t plain = PlainBytes(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const std::string_view character = FirstCharacter(text);
    AppendHarmless(character, contract::CharacterBytes(text) > 0, keep, &out);
    text.remove_prefix(character.size());
  }
}

std::string HarmlessStream::Next(std::string_view piece) {
  std::string bytes = std::move(cut_) + std::string(piece);
  const size_t whole = bytes.size() - CutTail(bytes);
  cut_ = bytes.substr(whole);
  bytes.resize(whole);
  return Harmless(bytes, Keep::kLayout);
}

std::string HarmlessStream::Finish() {
  const std::string rest = std::move(cut_);
  cut_.clear();
  return Harmless(rest, Keep::kLayout);
}

std::string OneLine(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t first = part.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    part = part.substr(first, part.find_last_not_of(" \t\r") - first + 1);
    line += line.empty() ? "" : " | ";
    line += Harmless(part);
  }
  return line;
}

size_t Width(std::string_view text) {
  size_t width = 0;
  while (true) {
    const size_t plain = PlainBytes(text);
    width += plain;
    text.remove_prefix(plain);
    if (text.empty()) return width;
    const std::string_view character = FirstCharacter(text);
    width += static_cast<size_t>(WidthOf(character));
    text.remove_prefix(character.size());
  }
}

std::string CutToWords(std::string_view text, size_t max_width) {
  if (Width(text) <= max_width) return std::string(text);
  constexpr std::string_view kMark = "…";
  const size_t room = max_width - std::min(max_width, Width(kMark));
  size_t kept = BytesThatFit(text, room);
  // A word that ends just there is whole; what stands before its blank is.
  if (kept < text.size() && text[kept] != ' ') kept = text.substr(0, kept).rfind(' ');
  if (kept == text.npos || kept == 0)
    kept = BytesThatFit(text.substr(0, text.find(' ')), kMaxWordWidth);
  if (kept == text.size()) return std::string(text);
  return fmt::format("{}{}", text.substr(0, text.find_last_not_of(' ', kept - 1) + 1), kMark);
}

std::string CutToWidth(std::string_view text, size_t max_width) {
  if (max_width == std::string_view::npos || Width(text) <= max_width) return std::string(text);
  return std::string(text.substr(0, BytesThatFit(text, max_width - 1))) + "…";
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

absl::Duration ToDuration(const google::protobuf::Duration& span) {
  return absl::Seconds(span.seconds()) + absl::Nanoseconds(span.nanos());
}

std::string Rfc3339(const google::protobuf::Timestamp& timestamp) {
  if (timestamp.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(timestamp.seconds()),
                          absl::UTCTimeZone());
}

std::string Ago(const google::protobuf::Timestamp& timestamp, absl::Time now) {
  if (timestamp.seconds() == 0) return "-";
  const absl::Duration age = now - ToTime(timestamp);
  if (absl::AbsDuration(age) < absl::Seconds(1)) return "now";
  // One unit is enough to see at a glance.
  absl::Duration rounded = absl::AbsDuration(age);
  for (absl::Duration unit : {absl::Hours(24), absl::Hours(1), absl::Minutes(1)}) {
    if (rounded < unit) continue;
    rounded = absl::Floor(rounded, unit);
    break;
  }
  const std::string text = contract::FormatDuration(rounded);
  return age > absl::ZeroDuration() ? text + " ago" : "in " + text;
}

}  // namespace muster::cli
