#include "agents/users/users_lines.h"

#include "contract/checks.h"
#include "contract/message_of.h"
#include "fmt/format.h"

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
  return contract::MakeCheck(
      v1::CHECK_CODE_USERS, v1::CHECK_RESULT_OK, kUsersSubject, WhatItMeans(kind),
      "let only people who trust each other submit to it, or set run_as: user where it is there "
      "(docs/security.md, \"Jobs that share a user\")");
}

std::string OwnUsersMeaning(std::string_view work_root) {
  return fmt::format("jobs run as their users, whose files are below \"{}\"", work_root);
}

v1::ClusterCheck OwnUsersLine(const absl::Status& helper, std::string_view work_root) {
  if (helper.ok()) {
    return contract::MakeCheck(v1::CHECK_CODE_USERS, v1::CHECK_RESULT_OK, kUsersSubject,
                               OwnUsersMeaning(work_root));
  }
  return contract::MakeCheck(v1::CHECK_CODE_USERS, v1::CHECK_RESULT_FAIL, kUsersSubject,
                             MessageOf(helper), "install muster-run-as as docs/machines.md says");
}

}  // namespace muster::users
