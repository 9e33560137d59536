// Judges jobs of several programs: what is acceptable, and which rank is where. Pure.
#ifndef MUSTER_PROTO_CONTRACT_ROLES_H_
#define MUSTER_PROTO_CONTRACT_ROLES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// A person can still write a list of this length; each role is a step of Slurm's.
inline constexpr int kMaxRoles = 16;

// A role that says nothing of its nodes gets all from its first one on.
void FillRoleDefaults(v1::JobSpec* spec);

// Adds what is wrong with the roles, each with its field's path.
void CheckRoles(const v1::JobSpec& spec, FieldErrors* errors);

// Returns two roles, by number, that share a node, the later one second; nothing if none do.
std::optional<std::pair<int, int>> FindRolesThatShareNodes(const v1::JobSpec& spec);

// Returns the first rank of each role: ranks are counted role by role, in their order, and node by
// node within a role.
std::vector<uint32_t> FirstRanks(const v1::JobSpec& spec);

// Returns the number of ranks of a run that can have a log: its nodes; with roles, all of theirs;
// one for a batch script. A setup has the node's number.
uint32_t RankCount(const v1::JobSpec& spec);

// Returns the role that a rank belongs to; null if the job has no roles, or not so many ranks.
const v1::Role* RoleOfRank(const v1::JobSpec& spec, uint32_t rank);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_ROLES_H_
