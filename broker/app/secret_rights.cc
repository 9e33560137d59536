#include "broker/app/secret_rights.h"

#include "broker/app/rights.h"

namespace muster::broker {

using secrets::OwnerKind;

absl::StatusOr<store::Scope> AuthorizeSecrets(const Principal& principal) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kManageSecrets);
  if (scope.ok() && principal.known_by == KnownBy::kNobody) return NotAllowed(principal);
  return scope;
}

bool MaySeeSecret(const store::Scope& scope, const secrets::Id& id) {
  return id.kind == OwnerKind::kProject || scope.Contains("", id.owner);
}

absl::Status CheckMayChangeSecret(const Principal& principal, const store::Scope& scope,
                                  const secrets::Id& id) {
  const bool is_allowed = id.kind == OwnerKind::kProject
                              ? principal.role == Role::kOperator || principal.role == Role::kAdmin
                              : scope.Contains("", id.owner);
  return is_allowed ? absl::OkStatus() : NotAllowed(principal);
}

bool MayUseSecretsOf(std::string_view project, std::string_view) { return !project.empty(); }

}  // namespace muster::broker
