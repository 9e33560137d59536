// Says what it means that all jobs of a cluster run as the agent's user, for a check and the log.
#ifndef MUSTER_AGENTS_USERS_SHARED_USER_H_
#define MUSTER_AGENTS_USERS_SHARED_USER_H_

#include "muster/v1/cluster.pb.h"

namespace muster::users {

// The subject of the line that says as whom jobs of a cluster run, whatever it says.
inline constexpr char kUsersSubject[] = "users";

// Returns the line of machines or Slurm with run_as: agent. It is no warning: one person's cluster
// is right so.
v1::ClusterCheck SharedUserLine(v1::ClusterKind kind);

}  // namespace muster::users

#endif  // MUSTER_AGENTS_USERS_SHARED_USER_H_
