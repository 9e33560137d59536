#include "broker/auth/oidc/person.h"

#include <algorithm>

#include "broker/auth/tokens.h"
#include "contract/characters.h"
#include "oidc/json.h"

namespace muster::oidc {
namespace {

using auth::Role;
using nlohmann::json;

// An address that its owner has not confirmed is whatever somebody has typed.
bool IsUnverified(const json& claims, const std::string& claim) {
  if (claim != "email" || !claims.contains("email_verified")) return false;
  return claims["email_verified"] != json(true);
}

bool IsName(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most && !contract::HasControlCharacter(text);
}

Role RoleIn(const std::map<std::string, Role>& roles, const std::string& name) {
  const auto found = roles.find(name);
  return found == roles.end() ? Role::kNone : found->second;
}

// Returns whether a name of this provider's could be taken for one of another's.
bool IsForeign(std::string_view name, const PersonRules& rules) {
  return rules.prefix.empty() &&
         std::any_of(rules.foreign_prefixes.begin(), rules.foreign_prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// False: the claim is there and is neither a list of names nor a name.
bool ReadGroups(const json& claims, const std::string& claim, std::vector<std::string>* groups) {
  const auto found = claim.empty() ? claims.end() : claims.find(claim);
  if (found == claims.end() || found->is_null()) return true;
  const json list = found->is_string() ? json::array({*found}) : *found;
  if (!list.is_array() || list.size() > kMaxGroups) return false;
  for (const json& one : list) {
    if (!one.is_string()) return false;
    groups->push_back(one.get<std::string>());
    if (!IsName(groups->back(), kMaxGroupBytes)) return false;
  }
  return true;
}

}  // namespace

Person PersonOf(const json& claims, const PersonRules& rules) {
  Person person;
  const std::string name = TextMember(claims, rules.username_claim.c_str());
  const size_t most = auth::kMaxUserBytes - kUserPrefix.size() - rules.prefix.size();
  if (!IsName(name, most) || name.find(' ') != name.npos || IsForeign(name, rules) ||
      IsUnverified(claims, rules.username_claim)) {
    person.fault = Fault::kUser;
    return person;
  }
  if (!ReadGroups(claims, rules.groups_claim, &person.groups)) {
    person.fault = Fault::kGroups;
    return person;
  }
  person.user = std::string(kUserPrefix) + rules.prefix + name;
  person.role = std::max(rules.role, RoleIn(rules.user_roles, name));
  for (std::string& group : person.groups) {
    if (IsForeign(group, rules)) {
      person.fault = Fault::kGroups;
      return person;
    }
    person.role = std::max(person.role, RoleIn(rules.group_roles, group));
    group.insert(0, rules.prefix);
  }
  return person;
}

}  // namespace muster::oidc
