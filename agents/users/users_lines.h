// Makes the lines of a check that say as whom the jobs of a cluster run.
#ifndef MUSTER_AGENTS_USERS_USERS_LINES_H_
#define MUSTER_AGENTS_USERS_USERS_LINES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/cluster.pb.h"

namespace muster::users {

// The subject of the line that says as whom jobs of a cluster run, whatever it says.
inline constexpr char kUsersSubject[] = "users";

// Returns the line of machines or Slurm with run_as: agent. It is no warning: one person's cluster
// is right so.
v1::ClusterCheck SharedUserLine(v1::ClusterKind kind);

// Returns the sentence for a cluster with run_as: user, whose users' files are below work_root.
std::string OwnUsersMeaning(std::string_view work_root);

// Returns the line of machines or Slurm with run_as: user. `helper` says if muster-run-as works.
v1::ClusterCheck OwnUsersLine(const absl::Status& helper, std::string_view work_root);

}  // namespace muster::users

#endif  // MUSTER_AGENTS_USERS_USERS_LINES_H_
