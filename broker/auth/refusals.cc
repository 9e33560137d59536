#include "broker/auth/refusals.h"

#include "contract/errors.h"

namespace muster::auth {

absl::Status NotAccepted() {
  return contract::Error(absl::StatusCode::kUnauthenticated, "CREDENTIAL_NOT_ACCEPTED",
                         "the token is not accepted: it is unknown here, has expired or was "
                         "revoked; log in again (muster login), make another one, or ask the "
                         "operator of the broker for one");
}

absl::Status Malformed() {
  return contract::Error(absl::StatusCode::kUnauthenticated, "CREDENTIAL_MALFORMED",
                         "the credential is not one token: send \"authorization: Bearer mst_...\" "
                         "once, with all 40 characters of the token");
}

absl::Status Missing() {
  return contract::Error(absl::StatusCode::kUnauthenticated, "CREDENTIAL_MISSING",
                         "the broker lets nobody in here without a token; ask its operator for "
                         "one (muster token create)");
}

}  // namespace muster::auth
