#include "broker/app/rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// Jobs, or tokens.
enum class Reach : uint8_t { kAll, kOwnOnly };

struct Right {
  Role role;
  UseCase use_case;
  Reach reach;
};

// A role may do only what this table lists.
constexpr Right kRights[] = {
    {Role::kViewer, UseCase::kReadJobs, Reach::kAll},
    {Role::kViewer, UseCase::kReadLogs, Reach::kAll},
    {Role::kViewer, UseCase::kReadFiles, Reach::kAll},
    {Role::kViewer, UseCase::kReadClusters, Reach::kAll},
    {Role::kViewer, UseCase::kWhoAmI, Reach::kAll},
    {Role::kViewer, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kSubmitJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kChangeJobs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadLogs, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadFiles, Reach::kOwnOnly},
    {Role::kSubmitter, UseCase::kReadClusters, Reach::kAll},
    {Role::kSubmitter, UseCase::kBringFiles, Reach::kAll},
    {Role::kSubmitter, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kSubmitter, UseCase::kWhoAmI, Reach::kAll},
    {Role::kSubmitter, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kOperator, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadJobs, Reach::kAll},
    {Role::kOperator, UseCase::kChangeJobs, Reach::kAll},
    {Role::kOperator, UseCase::kReadLogs, Reach::kAll},
    {Role::kOperator, UseCase::kReadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kReadClusters, Reach::kAll},
    {Role::kOperator, UseCase::kAskClusters, Reach::kAll},
    {Role::kOperator, UseCase::kForgetClusters, Reach::kAll},
    {Role::kOperator, UseCase::kBringFiles, Reach::kAll},
    {Role::kOperator, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kOperator, UseCase::kWhoAmI, Reach::kAll},
    {Role::kOperator, UseCase::kManageTokens, Reach::kOwnOnly},
    {Role::kAdmin, UseCase::kSubmitJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kChangeJobs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadLogs, Reach::kAll},
    {Role::kAdmin, UseCase::kReadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kReadClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kAskClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kForgetClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kAdmitClusters, Reach::kAll},
    {Role::kAdmin, UseCase::kBringFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kDownloadFiles, Reach::kAll},
    {Role::kAdmin, UseCase::kWhoAmI, Reach::kAll},
    {Role::kAdmin, UseCase::kManageTokens, Reach::kAll},
    {Role::kAdmin, UseCase::kReadAudit, Reach::kAll},
    {Role::kAgent, UseCase::kDownloadFiles, Reach::kAll},
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
    {"JobsService.UpdateJob", UseCase::kChangeJobs},
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
    {"ClustersService.InviteCluster", UseCase::kAdmitClusters},
    {"ClustersService.RevokeCluster", UseCase::kAdmitClusters},
    {"IdentityService.WhoAmI", UseCase::kWhoAmI},
    {"IdentityService.CreateToken", UseCase::kManageTokens},
    {"IdentityService.ListTokens", UseCase::kManageTokens},
    {"IdentityService.RevokeToken", UseCase::kManageTokens},
    {"AuditService.ListAuditRecords", UseCase::kReadAudit},
    {"AuditService.VerifyAudit", UseCase::kReadAudit},
};

std::optional<Reach> ReachOf(Role role, UseCase use_case) {
  for (const Right& right : kRights) {
    if (right.role == role && right.use_case == use_case) return right.reach;
  }
  return std::nullopt;
}

store::Scope ScopeOf(Reach reach, const Principal& principal) {
  switch (reach) {
    case Reach::kAll:
      return store::Scope::All();
    case Reach::kOwnOnly:
      return store::Scope::Of({}, {principal.user});
  }
  return store::Scope::Of({}, {});
}

}  // namespace

std::span<const RpcUseCase> RpcUseCases() { return kRpcs; }

absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case) {
  if (!principal.refusal.ok()) return principal.refusal;
  const std::optional<Reach> reach = ReachOf(principal.role, use_case);
  if (!reach) return NotAllowed(principal);
  return ScopeOf(*reach, principal);
}

absl::Status NotAllowed(const Principal& principal) {
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
      fmt::format("{}, as {}, may not do this; ask the operator of the broker for the right",
                  principal.user, auth::NameOf(principal.role)),
      {{"user", principal.user}, {"role", std::string(auth::NameOf(principal.role))}});
}

bool Includes(Role role, Role other) {
  return std::all_of(std::begin(kRights), std::end(kRights), [&](const Right& right) {
    if (right.role != other) return true;
    const std::optional<Reach> reach = ReachOf(role, right.use_case);
    return reach && (*reach == Reach::kAll || right.reach == Reach::kOwnOnly);
  });
}

std::string RightsTable() {
  constexpr Role kColumns[] = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};
  std::string table = "| call |";
  for (const Role role : kColumns) table += fmt::format(" {} |", auth::NameOf(role));
  table += "\n|---|---|---|---|---|\n";
  for (const RpcUseCase& rpc : kRpcs) {
    table += fmt::format("| `{}` |", rpc.rpc);
    for (const Role role : kColumns) {
      const std::optional<Reach> reach = ReachOf(role, rpc.use_case);
      table += !reach ? " no |" : *reach == Reach::kAll ? " yes |" : " own |";
    }
    table += '\n';
  }
  return table;
}

}  // namespace muster::broker
