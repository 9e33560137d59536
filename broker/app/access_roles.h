// Roles as the API has them. Pure; any thread.
#ifndef MUSTER_BROKER_APP_ACCESS_ROLES_H_
#define MUSTER_BROKER_APP_ACCESS_ROLES_H_

#include <optional>

#include "broker/auth/role.h"
#include "muster/v1/identity_service.pb.h"

namespace muster::broker {

// Returns unspecified for a role that people cannot have.
v1::AccessRole RoleToWire(auth::Role role);
// Nothing: the number is none of a role.
std::optional<auth::Role> RoleFromWire(v1::AccessRole role);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ACCESS_ROLES_H_
