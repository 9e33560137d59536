#include "agents/users/shared_user.h"

namespace muster::users {
namespace {

const char* WhatItMeans(v1::ClusterKind kind) {
  switch (kind) {
    case v1::CLUSTER_KIND_SLURM:
      return "all jobs run as the agent's user in Slurm: each can read and change what the others "
             "have in run directories and on shared file systems, their logs and environment too, "
             "and can end their jobs";
    case v1::CLUSTER_KIND_MUSTER:
      return "all jobs are those of the agent's user at the other broker, which sees who submitted "
             "them here only as a label: whatever that user may do there, each of them can";
    default:
      return "all jobs run as the agent's user: each can read and change what the others and the "
             "agent have there, also its keys and records, and can end their processes";
  }
}

}  // namespace

v1::ClusterCheck SharedUserLine(v1::ClusterKind kind) {
  v1::ClusterCheck line;
  line.set_code(v1::CHECK_CODE_USERS);
  line.set_subject(kUsersSubject);
  line.set_result(v1::CHECK_RESULT_OK);
  line.set_seen(WhatItMeans(kind));
  line.set_remedy(
      "let only people who trust each other submit to it, or set run_as: user where it is there "
      "(docs/security.md, \"Jobs that share a user\")");
  return line;
}

}  // namespace muster::users
