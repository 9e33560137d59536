// Makes a user, groups and a role of the claims of a token. Pure; any thread.
#ifndef MUSTER_BROKER_AUTH_OIDC_PERSON_H_
#define MUSTER_BROKER_AUTH_OIDC_PERSON_H_

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "broker/auth/oidc/jwt.h"
#include "broker/auth/role.h"

namespace muster::oidc {

// Begins the name of every user that a provider names. No Unix user has a ':' in the name, so none
// can be mistaken for one.
inline constexpr std::string_view kUserPrefix = "oidc:";
// A token has no room for many more.
inline constexpr size_t kMaxGroups = 256;
inline constexpr size_t kMaxGroupBytes = 256;

struct PersonRules {
  // Stands between kUserPrefix and the name, and before each group, so that people and groups of
  // two providers are never the same: "corp:". Empty: the provider of the single form has none.
  std::string prefix{};
  // Prefixes of the other providers: without an own prefix no name and no group begins with them.
  std::vector<std::string> foreign_prefixes{};
  std::string username_claim = "email";
  std::string groups_claim = "groups";              // empty: no groups
  auth::Role role = auth::Role::kNone;              // of everybody whom the provider knows
  std::map<std::string, auth::Role> user_roles{};   // by the claim's text, without prefixes
  std::map<std::string, auth::Role> group_roles{};  // likewise
};

struct Person {
  Fault fault = Fault::kNone;         // kUser, kGroups
  std::string user{};                 // with the prefixes
  std::vector<std::string> groups{};  // with the prefix of the rules
  auth::Role role = auth::Role::kNone;
};

// Returns the person, whose role is the greatest of those that fit.
Person PersonOf(const nlohmann::json& claims, const PersonRules& rules);

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_PERSON_H_
