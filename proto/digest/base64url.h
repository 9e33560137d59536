// Base64 for URLs without padding (RFC 4648, section 5), as the parts of a JWT have it.
#ifndef MUSTER_PROTO_DIGEST_BASE64URL_H_
#define MUSTER_PROTO_DIGEST_BASE64URL_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Returns the bytes of the text. Nothing: it is not what an encoder writes. Padding, blanks, other
// characters and unused bits that are set are refused, so that no two texts mean the same bytes.
std::optional<std::string> FromBase64Url(std::string_view text);
std::string ToBase64Url(std::string_view bytes);

}  // namespace muster

#endif  // MUSTER_PROTO_DIGEST_BASE64URL_H_
