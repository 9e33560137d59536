// Decides who a JWT speaks for. Any thread; it waits for nothing.
#ifndef MUSTER_BROKER_AUTH_OIDC_VERIFIER_H_
#define MUSTER_BROKER_AUTH_OIDC_VERIFIER_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "broker/auth/oidc/jwt.h"
#include "broker/auth/oidc/person.h"
#include "broker/auth/oidc/provider.h"

namespace muster::oidc {

// More would let a token live on long after its end.
inline constexpr absl::Duration kMaxClockSkew = absl::Minutes(10);
inline constexpr absl::Duration kDefaultClockSkew = absl::Seconds(60);

// Each has a thread, its keys and its discovery.
inline constexpr size_t kMaxIssuers = 8;

struct VerifierOptions {
  JwtRules jwt{.skew = kDefaultClockSkew};
  PersonRules person{};
  std::string scopes = "openid email offline_access";  // what clients ask the provider for
  std::string ca{};  // certificates in PEM that vouch for the provider; empty: those of the system
};

struct Recognised {
  Person person;  // its fault says why, if nobody is
  absl::Time expires = absl::InfinitePast();
};

class Verifier {
 public:
  // A provider, and the rules for its tokens. Both outlive the verifier.
  struct Issuer {
    const VerifierOptions* options = nullptr;
    Provider* provider = nullptr;
  };
  // No two have the same issuer, and there is one at least.
  explicit Verifier(std::vector<Issuer> issuers) : issuers_(std::move(issuers)) {}

  // The provider that clients are told to log in at: the first.
  const VerifierOptions& options() const { return *issuers_.front().options; }

  // The issuer that the token names is the only one by whose keys and rules it is judged. A key
  // that is not there is asked for, so that the same token may be good a moment later.
  Recognised Recognise(std::string_view text, absl::Time now) const;

 private:
  const std::vector<Issuer> issuers_;
};

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_VERIFIER_H_
