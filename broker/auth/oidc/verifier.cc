#include "broker/auth/oidc/verifier.h"

namespace muster::oidc {

Recognised Verifier::Recognise(std::string_view text, absl::Time now) const {
  const CheckedJwt checked = CheckJwt(text, *provider_.keys(), options_.jwt, now);
  if (checked.fault == Fault::kUnknownKey) provider_.Want();
  if (checked.fault != Fault::kNone) return {.person = {.fault = checked.fault}};
  return {.person = PersonOf(checked.claims, options_.person), .expires = checked.expires};
}

}  // namespace muster::oidc
