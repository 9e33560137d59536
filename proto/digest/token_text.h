// Makes the text of a bearer token: "mst_", 30 random letters and digits (178 bits), and 6 more
// that are a checksum of those before. The beginning lets scanners find a token that lies where it
// should not; the checksum tells a mistyped or cut one from a good one without asking the broker.
#ifndef MUSTER_PROTO_DIGEST_TOKEN_TEXT_H_
#define MUSTER_PROTO_DIGEST_TOKEN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view kTokenPrefix = "mst_";
inline constexpr size_t kTokenRandomCharacters = 30;
inline constexpr size_t kTokenSumCharacters = 6;
inline constexpr size_t kTokenCharacters =
    kTokenPrefix.size() + kTokenRandomCharacters + kTokenSumCharacters;

// Makes a new token. Empty: the system has no random bytes.
std::string NewTokenText();

// Returns whether the text has the form of a token and its checksum fits. It says nothing of
// whether a broker knows the token.
bool IsTokenText(std::string_view text);

}  // namespace muster

#endif  // MUSTER_PROTO_DIGEST_TOKEN_TEXT_H_
