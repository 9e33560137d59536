// The answers to callers whose credential the broker does not take. Pure; any thread.
#ifndef MUSTER_BROKER_AUTH_REFUSALS_H_
#define MUSTER_BROKER_AUTH_REFUSALS_H_

#include "absl/status/status.h"

namespace muster::auth {

// UNAUTHENTICATED, CREDENTIAL_NOT_ACCEPTED: one answer for an unknown, an expired and a revoked
// token, so that it tells nothing of what exists. The broker's log has the case.
absl::Status NotAccepted();
// UNAUTHENTICATED, CREDENTIAL_MALFORMED: what came is no token, as its sender can see, too.
absl::Status Malformed();
// UNAUTHENTICATED, CREDENTIAL_MISSING: whoever comes this way needs one.
absl::Status Missing();

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_REFUSALS_H_
