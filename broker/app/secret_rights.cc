#include "broker/app/secret_rights.h"

#include "broker/app/rights.h"

namespace muster::broker {

using secrets::OwnerKind;

absl::StatusOr<store::Scope> AuthorizeSecrets(const Principal& principal) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kManageSecrets);
  if (scope.ok() && principal.known_by == KnownBy::kNobody) return NotAllowed(principal);
  return scope;
}

bool MaySeeSecret(const Principal& principal, const store::Scope& scope, const secrets::Id& id) {
  if (id.kind == OwnerKind::kProject) return scope.Contains(id.owner, principal.user);
  return id.owner == principal.user || scope.is_all();
}

absl::Status CheckMayChangeSecret(const Principal& principal, const store::Scope& scope,
                                  const secrets::Id& id) {
  // A scope that has a project, and not only the caller's own jobs there, is of a role that looks
  // after the project.
  const bool is_allowed = id.kind == OwnerKind::kProject
                              ? principal.role == Role::kOperator || scope.Contains(id.owner, "")
                              : MaySeeSecret(principal, scope, id);
  return is_allowed ? absl::OkStatus() : NotAllowed(principal);
}

}  // namespace muster::broker
