#include "contract/characters.h"

#include <algorithm>
#include <cstdint>

#include "fmt/format.h"

namespace muster::contract {
namespace {

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Returns the code point of a character of `size` bytes whose bytes have the right form.
uint32_t CodePoint(std::string_view character) {
  static constexpr uint8_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = static_cast<uint8_t>(character[0]) & kLeadMask[character.size()];
  for (char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3F);
  return code;
}

bool IsControl(std::string_view character) {
  const uint32_t code = CodePoint(character);
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

}  // namespace

bool IsVariableName(std::string_view name) {
  return !name.empty() && !IsDigit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

size_t CharacterBytes(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size == 0 || lead > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const uint32_t code = CodePoint(text.substr(0, size));
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return code < kSmallest[size] || code > 0x10FFFF || is_surrogate ? 0 : size;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool HasControlCharacter(std::string_view text) {
  while (!text.empty()) {
    // Most text is of these characters alone.
    if (text[0] >= 0x20 && text[0] < 0x7F) {
      text.remove_prefix(1);
      continue;
    }
    const size_t size = CharacterBytes(text);
    if (size != 0 && IsControl(text.substr(0, size))) return true;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return false;
}

std::string_view CutBetweenCharacters(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && IsContinuation(text[end])) --end;
  return text.substr(0, end);
}

std::string Quoted(std::string_view text) {
  const std::string_view shown = CutBetweenCharacters(text, kMaxQuotedBytes);
  std::string quoted = "\"";
  for (std::string_view rest = shown; !rest.empty();) {
    const size_t size = CharacterBytes(rest);
    const std::string_view character = rest.substr(0, size == 0 ? 1 : size);
    if (size == 0 || IsControl(character)) {
      for (char c : character) quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      if (character == "\"" || character == "\\") quoted += '\\';
      quoted += character;
    }
    rest.remove_prefix(character.size());
  }
  quoted += '"';
  if (shown.size() < text.size()) quoted += fmt::format("... ({} bytes)", text.size());
  return quoted;
}

}  // namespace muster::contract
