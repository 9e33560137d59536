// An ID token as a caller sends it, its claims behind a good signature, and what a provider
// answers.
#include "broker/auth/oidc/jwt.h"

#include <string>

#include "absl/time/time.h"
#include "broker/auth/oidc/key_set.h"
#include "broker/auth/oidc/person.h"
#include "oidc/discovery.h"
#include "tests/fuzz/input.h"
#include "tests/unit/oidc/signer.h"

namespace {

namespace oidc = muster::oidc;

constexpr char kIssuer[] = "https://id.lab";

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

oidc::CheckedJwt Check(const std::string& token, const std::vector<oidc::SigningKey>& keys) {
  return oidc::CheckJwt(token, keys, {.issuer = kIssuer, .audience = "muster"}, kNow);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const oidc::Signer signer(oidc::Algorithm::kEs256);
  static const auto keys = oidc::ReadKeySet(oidc::SetOf({signer.Jwk()}));
  const std::string text(muster::fuzz::TextOf(data, size));

  static_cast<void>(oidc::ReadKeySet(text));
  static_cast<void>(oidc::ReadDiscovery(text, kIssuer));
  // Nobody but the signer has the key.
  muster::fuzz::Require(Check(text, *keys).fault != oidc::Fault::kNone,
                        "a forged token is refused");
  static_cast<void>(Check(signer.Token(text, "{}"), *keys));
  const std::string token = signer.Token(signer.Header(), text);
  const oidc::CheckedJwt checked = Check(token, *keys);
  if (checked.fault == oidc::Fault::kNone) {
    muster::fuzz::Require(checked.expires > kNow - absl::Minutes(1), "no expired token is taken");
    static_cast<void>(oidc::PersonOf(checked.claims, {}));
  }
  std::string forged = token;
  forged.resize(token.rfind('.') + 1);
  muster::fuzz::Require(Check(forged, *keys).fault != oidc::Fault::kNone,
                        "a token without a signature is refused");
  return 0;
}
