// Decides who may do what with a secret. Pure; any thread.
#ifndef MUSTER_BROKER_APP_SECRET_RIGHTS_H_
#define MUSTER_BROKER_APP_SECRET_RIGHTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/secrets/secret.h"
#include "broker/store/scope.h"

namespace muster::broker {

// Returns the scope of UseCase::kManageSecrets. A caller whom nobody knows has none: nobody could
// tell later whose such a secret is.
absl::StatusOr<store::Scope> AuthorizeSecrets(const Principal& principal);

// Returns whether the principal may know that there is such a secret: one of the user's own, or of
// a project into which the user may submit jobs. `scope` is that of AuthorizeSecrets.
bool MaySeeSecret(const Principal& principal, const store::Scope& scope, const secrets::Id& id);
// PERMISSION_DENIED, NOT_ALLOWED: the principal may neither set nor delete it.
absl::Status CheckMayChangeSecret(const Principal& principal, const store::Scope& scope,
                                  const secrets::Id& id);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SECRET_RIGHTS_H_
