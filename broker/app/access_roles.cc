#include "broker/app/access_roles.h"

#include <utility>

namespace muster::broker {
namespace {

constexpr std::pair<auth::Role, v1::AccessRole> kRoles[] = {
    {auth::Role::kViewer, v1::ACCESS_ROLE_VIEWER},
    {auth::Role::kSubmitter, v1::ACCESS_ROLE_SUBMITTER},
    {auth::Role::kOperator, v1::ACCESS_ROLE_OPERATOR},
    {auth::Role::kAdmin, v1::ACCESS_ROLE_ADMIN},
    {auth::Role::kMember, v1::ACCESS_ROLE_MEMBER}};

}  // namespace

v1::AccessRole RoleToWire(auth::Role role) {
  for (const auto& [known, wire] : kRoles) {
    if (known == role) return wire;
  }
  return v1::ACCESS_ROLE_UNSPECIFIED;
}

std::optional<auth::Role> RoleFromWire(v1::AccessRole role) {
  for (const auto& [known, wire] : kRoles) {
    if (wire == role) return known;
  }
  return std::nullopt;
}

}  // namespace muster::broker
