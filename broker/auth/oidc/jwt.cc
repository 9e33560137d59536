#include "broker/auth/oidc/jwt.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "contract/text.h"
#include "digest/base64url.h"
#include "oidc/json.h"

namespace muster::oidc {
namespace {

using nlohmann::json;

// The last second of the year 9999.
constexpr int64_t kMaxSeconds = 253'402'300'799;

struct Parts {
  std::string_view signed_text;  // header and claims, as they came
  std::string header, claims, signature;
};

std::optional<Parts> Split(std::string_view text) {
  if (text.size() > kMaxJwtBytes || !LooksLikeJwt(text)) return std::nullopt;
  const size_t first = text.find('.');
  const size_t last = text.rfind('.');
  std::optional<std::string> header = FromBase64Url(text.substr(0, first));
  std::optional<std::string> claims = FromBase64Url(text.substr(first + 1, last - first - 1));
  std::optional<std::string> signature = FromBase64Url(text.substr(last + 1));
  if (!header || !claims || !signature) return std::nullopt;
  return Parts{text.substr(0, last), *std::move(header), *std::move(claims), *std::move(signature)};
}

// A token is never asked where its key is, nor how to read it. Its type keeps one that was made for
// another end, such as a logout token, from being taken for an ID token.
bool IsPlainHeader(const json& header) {
  for (const char* name : {"crit", "jwk", "jku", "x5u", "x5c", "zip", "enc", "b64"}) {
    if (header.contains(name)) return false;
  }
  const bool is_good_id =
      !header.contains("kid") || (header["kid"].is_string() && !TextMember(header, "kid").empty() &&
                                  TextMember(header, "kid").size() <= kMaxKeyIdBytes);
  if (!is_good_id) return false;
  if (!header.contains("typ")) return true;
  const std::string type = absl::AsciiStrToLower(TextMember(header, "typ"));
  return type == "jwt" || type == "at+jwt" || type == "application/at+jwt";
}

std::optional<Algorithm> AlgorithmOf(const json& header) {
  const std::string name = TextMember(header, "alg");
  if (name == NameOf(Algorithm::kRs256)) return Algorithm::kRs256;
  if (name == NameOf(Algorithm::kEs256)) return Algorithm::kEs256;
  return std::nullopt;
}

// A list needs "azp", which says for whom of them the token was made; it is checked wherever it is.
bool IsFor(const json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (claims.contains("azp") && TextMember(claims, "azp") != audience) return false;
  if (found->is_string()) return found->get<std::string>() == audience;
  if (!found->is_array() || found->size() > kMaxAudiences) return false;
  if (found->size() > 1 && !claims.contains("azp")) return false;
  const bool has_texts_alone =
      std::all_of(found->begin(), found->end(), [](const json& one) { return one.is_string(); });
  return has_texts_alone && std::find(found->begin(), found->end(), json(audience)) != found->end();
}

// Reads a NumericDate; nothing if it is none, or lies outside the calendar.
std::optional<absl::Time> TimeIn(const json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  const double seconds = found->get<double>();
  if (!(seconds >= 0 && seconds <= static_cast<double>(kMaxSeconds))) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

Fault CheckClaims(const json& claims, const JwtRules& rules, absl::Time now, absl::Time* expires) {
  if (TextMember(claims, "iss") != rules.issuer) return Fault::kIssuer;
  if (!IsFor(claims, rules.audience)) return Fault::kAudience;
  const std::optional<absl::Time> end = TimeIn(claims, "exp");
  if (!end) return Fault::kClaims;
  *expires = *end + rules.skew;
  if (*expires <= now) return Fault::kExpired;
  for (const char* name : {"nbf", "iat"}) {
    if (!claims.contains(name)) continue;
    const std::optional<absl::Time> begin = TimeIn(claims, name);
    if (!begin) return Fault::kClaims;
    if (*begin > now + rules.skew) return Fault::kNotYet;
  }
  // The mark of a token that tells of a logout (OpenID Connect Back-Channel Logout).
  return claims.contains("events") ? Fault::kClaims : Fault::kNone;
}

Fault CheckSigned(const Parts& parts, const std::vector<SigningKey>& keys) {
  const std::optional<json> header = ParseObject(parts.header);
  if (!header) return Fault::kForm;
  const std::optional<Algorithm> algorithm = AlgorithmOf(*header);
  if (!algorithm) return Fault::kAlgorithm;
  if (!IsPlainHeader(*header)) return Fault::kHeader;
  if (keys.empty()) return Fault::kNoKeys;
  const SigningKey* key = FindKey(keys, TextMember(*header, "kid"), *algorithm);
  if (key == nullptr) return Fault::kUnknownKey;
  return IsSignedBy(*key, parts.signed_text, parts.signature) ? Fault::kNone : Fault::kSignature;
}

}  // namespace

std::string_view NameOf(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kForm:
      return "jwt_form";
    case Fault::kAlgorithm:
      return "jwt_algorithm";
    case Fault::kHeader:
      return "jwt_header";
    case Fault::kNoKeys:
      return "oidc_no_keys";
    case Fault::kUnknownKey:
      return "jwt_unknown_key";
    case Fault::kSignature:
      return "jwt_signature";
    case Fault::kIssuer:
      return "jwt_issuer";
    case Fault::kAudience:
      return "jwt_audience";
    case Fault::kExpired:
      return "jwt_expired";
    case Fault::kNotYet:
      return "jwt_not_yet";
    case Fault::kClaims:
      return "jwt_claims";
    case Fault::kUser:
      return "jwt_user";
    case Fault::kGroups:
      return "jwt_groups";
  }
  return "unknown";
}

bool LooksLikeJwt(std::string_view text) { return std::count(text.begin(), text.end(), '.') == 2; }

std::optional<std::string> ClaimedIssuer(std::string_view text) {
  const std::optional<Parts> parts = Split(text);
  if (!parts) return std::nullopt;
  const std::optional<json> claims = ParseObject(parts->claims);
  if (!claims) return std::nullopt;
  return TextMember(*claims, "iss");
}

CheckedJwt CheckJwt(std::string_view text, const std::vector<SigningKey>& keys,
                    const JwtRules& rules, absl::Time now) {
  const std::optional<Parts> parts = Split(text);
  if (!parts) return {.fault = Fault::kForm};
  if (const Fault fault = CheckSigned(*parts, keys); fault != Fault::kNone) return {.fault = fault};
  std::optional<json> claims = ParseObject(parts->claims);
  if (!claims) return {.fault = Fault::kForm};
  CheckedJwt checked;
  checked.fault = CheckClaims(*claims, rules, now, &checked.expires);
  if (checked.fault == Fault::kNone) checked.claims = *std::move(claims);
  return checked;
}

}  // namespace muster::oidc
