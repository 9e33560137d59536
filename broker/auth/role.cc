#include "broker/auth/role.h"

namespace muster::auth {
namespace {

// The roles of people.
constexpr Role kRoles[] = {Role::kNone,     Role::kViewer, Role::kSubmitter,
                           Role::kOperator, Role::kAdmin,  Role::kMember};

}  // namespace

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kViewer:
      return "viewer";
    case Role::kSubmitter:
      return "submitter";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
    case Role::kAgent:
      return "agent";
    case Role::kMember:
      return "member";
  }
  return "unknown";
}

std::optional<Role> RoleOfName(std::string_view name) {
  for (const Role role : kRoles) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

}  // namespace muster::auth
