#include "broker/app/rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// Jobs, uploaded files, tokens, secrets or projects.
enum class Reach : uint8_t { kAll, kOwnOnly };

struct Right {
  Role role;
  UseCase use_case;
  Reach reach;
};

// A role is over the whole broker or over a project.
enum class Over : uint8_t { kBroker, kProject };

// A role over the whole broker may do only what this table lists.
constexpr Right kRights[] = {
    {Role::kViewer, UseCase::kReadJobs, Reach::kAll},
    {Role::kViewer, UseCase::kReadLogs, Reach::kAll},
    {Role::kViewer, UseCase::kReadFiles, Reach::kAll},
    {Role::kViewer, UseCase::kReadClusters, Reach::kAll},
    {Role::kViewer, UseCase::kWhoAmI, Reach::kAll},
    {Role::kViewer, UseCase::kLogIn, Reach::kAll},
    {Role::kViewer, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kViewer, UseCase::kReadProjects, Reach::kAll},
    {Role::kSubmitter, UseCase::kSubmitJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kChangeJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadLogs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadFiles, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadClusters, Reach::kAll},
    {Role::kSubmitter, UseCase::kBringFiles, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kDownloadFiles, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kWhoAmI, Reach::kAll},
    {Role::kSubmitter, UseCase::kLogIn, Reach::kAll},
    {Role::kSubmitter, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kManageSecrets, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadProjects, Reach::kAll},
    {Role::kOperator, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadJobs, Reach::kAll},
    {Role::kOperator, UseCase::kChangeJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadLogs, Reach::kAll},
    {Role::kOperator, UseCase::kReadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kReadClusters, Reach::kAll},
    {Role::kOperator, UseCase::kAskClusters, Reach::kAll},
    {Role::kOperator, UseCase::kForgetClusters, Reach::kAll},
    {Role::kOperator, UseCase::kCordonClusters, Reach::kAll},
    {Role::kOperator, UseCase::kBringFiles, Reach::kAll},
    {Role::kOperator, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kWhoAmI, Reach::kAll},
    {Role::kOperator, UseCase::kLogIn, Reach::kAll},
    {Role::kOperator, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kOperator, UseCase::kManageSecrets, Reach::kOwnOnly},
    {Role::kOperator, UseCase::kReadProjects, Reach::kAll},
    {Role::kAdmin, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kChangeJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadLogs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kReadClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kAskClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kForgetClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kCordonClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kAdmitClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kBringFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kWhoAmI, Reach::kAll},
    {Role::kAdmin, UseCase::kLogIn, Reach::kAll},
    {Role::kAdmin, UseCase::kManageTokens, Reach::kAll},
    {Role::kAdmin, UseCase::kManageSecrets, Reach::kAll},
    {Role::kAdmin, UseCase::kReadProjects, Reach::kAll},
    {Role::kAdmin, UseCase::kManageMembers, Reach::kAll},
    {Role::kAdmin, UseCase::kManageProjects, Reach::kAll},
    {Role::kMember, UseCase::kWhoAmI, Reach::kAll},
    {Role::kMember, UseCase::kLogIn, Reach::kAll},
    {Role::kMember, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kAdmin, UseCase::kReadAudit, Reach::kAll},
    {Role::kAgent, UseCase::kDownloadFiles, Reach::kAll},
};

// The rights of a role in a project, with the jobs of that project alone.
constexpr Right kRightsInProject[] = {
    {Role::kViewer, UseCase::kReadJobs, Reach::kAll},
    {Role::kViewer, UseCase::kReadLogs, Reach::kAll},
    {Role::kViewer, UseCase::kReadFiles, Reach::kAll},
    {Role::kViewer, UseCase::kReadClusters, Reach::kAll},
    {Role::kViewer, UseCase::kReadProjects, Reach::kAll},
    {Role::kSubmitter, UseCase::kSubmitJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadJobs, Reach::kAll},
    {Role::kSubmitter, UseCase::kChangeJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadLogs, Reach::kAll},
    {Role::kSubmitter, UseCase::kReadFiles, Reach::kAll},
    {Role::kSubmitter, UseCase::kReadClusters, Reach::kAll},
    {Role::kSubmitter, UseCase::kBringFiles, Reach::kAll},
    {Role::kSubmitter, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kSubmitter, UseCase::kManageSecrets, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadProjects, Reach::kAll},
    {Role::kOperator, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadJobs, Reach::kAll},
    {Role::kOperator, UseCase::kChangeJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadLogs, Reach::kAll},
    {Role::kOperator, UseCase::kReadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kReadClusters, Reach::kAll},
    {Role::kOperator, UseCase::kBringFiles, Reach::kAll},
    {Role::kOperator, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kManageSecrets, Reach::kAll},
    {Role::kOperator, UseCase::kReadProjects, Reach::kAll},
    {Role::kAdmin, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kChangeJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadLogs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kReadClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kBringFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kManageSecrets, Reach::kAll},
    {Role::kAdmin, UseCase::kReadProjects, Reach::kAll},
    {Role::kAdmin, UseCase::kManageMembers, Reach::kAll},
};

constexpr RpcUseCase kRpcs[] = {
    {"JobsService.SubmitJob", UseCase::kSubmitJobs},
    {"JobsService.SubmitJobs", UseCase::kSubmitJobs},
    {"JobsService.PlanJob", UseCase::kSubmitJobs},
    {"JobsService.RerunJobs", UseCase::kSubmitJobs},
    {"JobsService.GetJob", UseCase::kReadJobs},
    {"JobsService.ListJobs", UseCase::kReadJobs},
    {"JobsService.CountJobs", UseCase::kReadJobs},
    {"JobsService.ListTransitions", UseCase::kReadJobs},
    {"JobsService.WatchJobs", UseCase::kReadJobs},
    {"JobsService.CancelJobs", UseCase::kChangeJobs},
    {"JobsService.HoldJobs", UseCase::kChangeJobs},
    {"JobsService.ReleaseJobs", UseCase::kChangeJobs},
    {"JobsService.MoveJobs", UseCase::kChangeJobs},
    {"JobsService.UpdateJob", UseCase::kChangeJobs},
    {"JobsService.SignalJobs", UseCase::kChangeJobs},
    {"JobsService.ListLogs", UseCase::kReadLogs},
    {"JobsService.ReadLog", UseCase::kReadLogs},
    {"FilesService.FetchFiles", UseCase::kReadFiles},
    {"FilesService.FindMissingFiles", UseCase::kBringFiles},
    {"FilesService.UploadFiles", UseCase::kBringFiles},
    {"FilesService.DownloadFile", UseCase::kDownloadFiles},
    {"ClustersService.ListClusters", UseCase::kReadClusters},
    {"ClustersService.GetCluster", UseCase::kReadClusters},
    {"ClustersService.CheckCluster", UseCase::kAskClusters},
    {"ClustersService.DescribeCluster", UseCase::kAskClusters},
    {"ClustersService.ForgetCluster", UseCase::kForgetClusters},
    {"ClustersService.CordonCluster", UseCase::kCordonClusters},
    {"ClustersService.UncordonCluster", UseCase::kCordonClusters},
    {"ClustersService.InviteCluster", UseCase::kAdmitClusters},
    {"ClustersService.RevokeCluster", UseCase::kAdmitClusters},
    {"IdentityService.WhoAmI", UseCase::kWhoAmI},
    {"IdentityService.GetLoginInfo", UseCase::kLogIn},
    {"IdentityService.CreateToken", UseCase::kManageTokens},
    {"IdentityService.ListTokens", UseCase::kManageTokens},
    {"IdentityService.RevokeToken", UseCase::kManageTokens},
    {"SecretsService.SetSecret", UseCase::kManageSecrets},
    {"SecretsService.ListSecrets", UseCase::kManageSecrets},
    {"SecretsService.DeleteSecret", UseCase::kManageSecrets},
    {"ProjectsService.CreateProject", UseCase::kManageProjects},
    {"ProjectsService.UpdateProject", UseCase::kManageProjects},
    {"ProjectsService.GetProject", UseCase::kReadProjects},
    {"ProjectsService.ListProjects", UseCase::kReadProjects},
    {"ProjectsService.ArchiveProject", UseCase::kManageProjects},
    {"ProjectsService.SetMember", UseCase::kManageMembers},
    {"ProjectsService.RemoveMember", UseCase::kManageMembers},
    {"AuditService.ListAuditRecords", UseCase::kReadAudit},
    {"AuditService.VerifyAudit", UseCase::kReadAudit},
    {"UsageService.GetUsage", UseCase::kReadJobs},
};

std::optional<Reach> ReachOf(Over over, Role role, UseCase use_case) {
  const std::span<const Right> rights =
      over == Over::kBroker ? std::span<const Right>(kRights) : kRightsInProject;
  for (const Right& right : rights) {
    if (right.role == role && right.use_case == use_case) return right.reach;
  }
  return std::nullopt;
}

// Returns a cell of a table: what the role may do with the calls' jobs.
std::string Cell(Over over, Role role, UseCase use_case) {
  const std::optional<Reach> reach = ReachOf(over, role, use_case);
  return !reach ? " no |" : *reach == Reach::kAll ? " yes |" : " own |";
}

std::string Table(Over over, std::span<const Role> columns) {
  std::string table = "| call |";
  for (const Role role : columns) table += fmt::format(" {} |", auth::NameOf(role));
  table += "\n|---|";
  for (size_t i = 0; i < columns.size(); ++i) table += "---|";
  table += '\n';
  for (const RpcUseCase& rpc : kRpcs) {
    table += fmt::format("| `{}` |", rpc.rpc);
    for (const Role role : columns) table += Cell(over, role, rpc.use_case);
    table += '\n';
  }
  return table;
}

}  // namespace

std::span<const RpcUseCase> RpcUseCases() { return kRpcs; }

absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case) {
  if (!principal.refusal.ok()) return principal.refusal;
  std::optional<Reach> reach = ReachOf(Over::kBroker, principal.role, use_case);
  if (reach != Reach::kAll && principal.is_agent) {
    const std::optional<Reach> as_agent = ReachOf(Over::kBroker, Role::kAgent, use_case);
    if (as_agent) reach = as_agent;
  }
  if (reach == Reach::kAll) return store::Scope::All();
  std::vector<std::string> users, projects, own_in;
  if (reach == Reach::kOwnOnly) users.push_back(principal.user);
  for (const auth::Membership& membership : principal.memberships) {
    const std::optional<Reach> more = ReachOf(Over::kProject, membership.role, use_case);
    if (more == Reach::kAll) projects.push_back(membership.project);
    if (more == Reach::kOwnOnly) own_in.push_back(membership.project);
  }
  if (users.empty() && projects.empty() && own_in.empty()) return NotAllowed(principal);
  return store::Scope::Of(std::move(projects), std::move(users))
      .With(principal.user, std::move(own_in));
}

absl::Status NotAllowed(const Principal& principal) {
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
      fmt::format("{}, as {}, may not do this; ask the operator of the broker for the right",
                  principal.user, auth::NameOf(principal.role)),
      {{"user", principal.user}, {"role", std::string(auth::NameOf(principal.role))}});
}

absl::Status RightsChanged() {
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "RIGHTS_CHANGED",
      "your memberships of projects have changed since this stream began; begin it again");
}

bool Allows(Role role, bool in_project, UseCase use_case, Relation relation) {
  const Over over = in_project ? Over::kProject : Over::kBroker;
  const std::optional<Reach> reach = ReachOf(over, role, use_case);
  if (!reach) return false;
  const bool is_own = relation == Relation::kOwnHere || relation == Relation::kOwnElsewhere;
  const bool is_of_project = relation == Relation::kOwnHere || relation == Relation::kOfProject;
  if (in_project && !is_of_project) return false;
  return *reach == Reach::kAll || is_own;
}

bool Includes(Role role, Role other) {
  return std::all_of(std::begin(kRights), std::end(kRights), [&](const Right& right) {
    if (right.role != other) return true;
    const std::optional<Reach> reach = ReachOf(Over::kBroker, role, right.use_case);
    return reach && (*reach == Reach::kAll || right.reach == Reach::kOwnOnly);
  });
}

std::string RightsTable() {
  constexpr Role kOverBroker[] = {Role::kMember, Role::kViewer, Role::kSubmitter, Role::kOperator,
                                  Role::kAdmin};
  constexpr Role kInProject[] = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};
  return fmt::format("A role over the whole broker:\n\n{}\nA role in a project:\n\n{}",
                     Table(Over::kBroker, kOverBroker), Table(Over::kProject, kInProject));
}

}  // namespace muster::broker
