// The roles of those who ask, and their names. Pure; any thread.
#ifndef MUSTER_BROKER_AUTH_ROLE_H_
#define MUSTER_BROKER_AUTH_ROLE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::auth {

// app/rights.h says what each may do. The numbers are in the file of the tokens and never change.
enum class Role : uint8_t {
  kNone = 0,       // nothing: who asks is not known well enough
  kViewer = 1,     // looks at everything, changes nothing
  kSubmitter = 2,  // own jobs
  kOperator = 3,   // everything but to say who comes in: tokens of others, agents of clusters
  kAdmin = 4,      // everything that people may do
  kAgent = 5,      // the agent of a cluster, over TLS; no token has it
  kMember = 6,     // nothing by itself: only what memberships of projects give
};

// Returns "none", "viewer", "submitter", "operator", "admin", "agent" or "member"; "unknown" for
// any other number.
std::string_view NameOf(Role role);
// Nothing: no role has this name.
std::optional<Role> RoleOfName(std::string_view name);

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_ROLE_H_
