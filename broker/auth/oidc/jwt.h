// Reads and checks a JWT (RFC 7519, with what RFC 8725 advises). Pure; any thread.
#ifndef MUSTER_BROKER_AUTH_OIDC_JWT_H_
#define MUSTER_BROKER_AUTH_OIDC_JWT_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "broker/auth/oidc/key_set.h"

namespace muster::oidc {

// gRPC takes no longer header.
inline constexpr size_t kMaxJwtBytes = 8192;
// Texts in "aud".
inline constexpr size_t kMaxAudiences = 32;

// The reason for which a token is refused. It is for the operator alone: the caller is told
// nothing.
enum class Fault : uint8_t {
  kNone,
  kForm,        // no JWT: parts, base64, JSON, a name twice, or too long
  kAlgorithm,   // none of the two that are taken, such as "none" and HS256
  kHeader,      // a header that names a key or an extension, or a type that is no ID token
  kNoKeys,      // the broker has no keys of the provider yet
  kUnknownKey,  // none of the provider's keys has this name and algorithm
  kSignature,
  kIssuer,
  kAudience,
  kExpired,
  kNotYet,  // "nbf" or "iat" lies ahead
  kClaims,  // a claim is missing or of the wrong type
  kUser,    // the claim with the user's name is missing, unverified, too long or has odd characters
  kGroups,  // the claim with the groups is no list of texts, or has too many
};
// Returns "expired"
std::string_view NameOf(Fault fault);

struct JwtRules {
  std::string issuer{};
  std::string audience{};
  // The time by which the clocks of the provider and of the broker may differ.
  absl::Duration skew{};
};

struct CheckedJwt {
  Fault fault = Fault::kNone;
  nlohmann::json claims{};  // null unless kNone
  absl::Time expires = absl::InfinitePast();
};

// Returns whether the text looks like a JWT: three parts with dots between.
bool LooksLikeJwt(std::string_view text);

// Returns the issuer that the token names. Nobody has looked at the signature: it says whose keys
// and rules to judge by, and CheckJwt compares it again. Nothing: it is no JWT.
std::optional<std::string> ClaimedIssuer(std::string_view text);

// The claims are looked at only after the signature.
CheckedJwt CheckJwt(std::string_view text, const std::vector<SigningKey>& keys,
                    const JwtRules& rules, absl::Time now);

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_JWT_H_
