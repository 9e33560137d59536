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
  // Both outlive it.
  Verifier(const VerifierOptions* options, Provider* provider)
      : options_(*options), provider_(*provider) {}

  const VerifierOptions& options() const { return options_; }

  // A key that is not there is asked for, so that the same token may be good a moment later.
  Recognised Recognise(std::string_view text, absl::Time now) const;

 private:
  const VerifierOptions& options_;
  Provider& provider_;
};

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_VERIFIER_H_
