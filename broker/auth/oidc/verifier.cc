#include "broker/auth/oidc/verifier.h"

#include <algorithm>
#include <optional>

namespace muster::oidc {

Recognised Verifier::Recognise(std::string_view text, absl::Time now) const {
  const std::optional<std::string> claimed = ClaimedIssuer(text);
  if (!claimed) return {.person = {.fault = Fault::kForm}};
  const auto issuer = std::find_if(issuers_.begin(), issuers_.end(), [&](const Issuer& one) {
    return one.options->jwt.issuer == *claimed;
  });
  if (issuer == issuers_.end()) return {.person = {.fault = Fault::kIssuer}};
  const CheckedJwt checked = CheckJwt(text, *issuer->provider->keys(), issuer->options->jwt, now);
  if (checked.fault == Fault::kUnknownKey) issuer->provider->Want();
  if (checked.fault != Fault::kNone) return {.person = {.fault = checked.fault}};
  return {.person = PersonOf(checked.claims, issuer->options->person), .expires = checked.expires};
}

}  // namespace muster::oidc
