// Finds the characters that a text holds, and shows a text from outside in a message.
#ifndef MUSTER_PROTO_CONTRACT_CHARACTERS_H_
#define MUSTER_PROTO_CONTRACT_CHARACTERS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::contract {

// Goes by ASCII only, whatever the locale.
constexpr bool IsLowerLetter(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsLetter(char c) { return IsLowerLetter(c) || (c >= 'A' && c <= 'Z'); }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// [A-Za-z_][A-Za-z0-9_]*, as every shell takes it.
bool IsVariableName(std::string_view name);

// Returns the length in bytes of the first character of a non-empty text; 0 if not UTF-8.
size_t CharacterBytes(std::string_view text);
bool IsUtf8(std::string_view text);
// Returns whether a terminal or a line-based file could take a byte of it for a command: C0, DEL or
// C1.
bool HasControlCharacter(std::string_view text);
// Returns the longest beginning of at most `max_bytes` that ends between two characters.
std::string_view CutBetweenCharacters(std::string_view text, size_t max_bytes);

// Enough to recognise a value in a message.
inline constexpr size_t kMaxQuotedBytes = 80;
// Returns the text in double quotes, with control characters and bytes that are not UTF-8 as \xNN,
// cut after kMaxQuotedBytes.
std::string Quoted(std::string_view text);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_CHARACTERS_H_
