#include "broker/app/audited_calls.h"

#include <algorithm>
#include <iterator>

namespace muster::broker {
namespace {

// These change nothing.
constexpr std::string_view kReads[] = {
    "JobsService.PlanJob",
    "JobsService.GetJob",
    "JobsService.ListJobs",
    "JobsService.CountJobs",
    "JobsService.ListTransitions",
    "JobsService.WatchJobs",
    "FilesService.FindMissingFiles",
    "ClustersService.ListClusters",
    "ClustersService.GetCluster",
    "ClustersService.CheckCluster",
    "ClustersService.DescribeCluster",
    "IdentityService.WhoAmI",
    "IdentityService.GetLoginInfo",
    "IdentityService.ListTokens",
    "SecretsService.ListSecrets",
    "ProjectsService.GetProject",
    "ProjectsService.ListProjects",
    "AuditService.ListAuditRecords",
    "AuditService.VerifyAudit",
    "UsageService.GetUsage",
};
constexpr std::string_view kLogReads[] = {"JobsService.ListLogs", "JobsService.ReadLog"};
// Calls for jobs and files come by the thousand in a second. The rest are few, and somebody may ask
// months later who opened the door.
constexpr std::string_view kFrequent[] = {
    "JobsService.SubmitJob",
    "JobsService.SubmitJobs",
    "JobsService.RerunJobs",
    "JobsService.CancelJobs",
    "JobsService.HoldJobs",
    "JobsService.ReleaseJobs",
    "JobsService.MoveJobs",
    "JobsService.UpdateJob",
    "JobsService.SignalJobs",
    "FilesService.UploadFiles",
    "FilesService.DownloadFile",
    "FilesService.FetchFiles",
    "SecretLinkService.FetchRunSecrets",
};
// The reports of agents are in the history of the jobs; their certificates are not.
constexpr std::string_view kAgentStreams[] = {
    "/muster.agent.v1.AgentLinkService/",
    "/muster.agent.v1.LogLinkService/",
    "/muster.agent.v1.FileLinkService/",
};

template <size_t kSize>
bool Has(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::string AuditedAction(std::string_view method) {
  if (method.starts_with('/')) method.remove_prefix(1);
  const size_t slash = method.find('/');
  if (slash == method.npos) return std::string(method);
  const std::string_view service = method.substr(0, slash);
  const size_t dot = service.rfind('.');
  std::string action(dot == service.npos ? service : service.substr(dot + 1));
  action += '.';
  action += method.substr(slash + 1);
  return action;
}

AuditRule AuditRuleOf(std::string_view method, bool audits_log_reads) {
  if (!method.starts_with("/muster.")) return AuditRule::kNever;
  const bool is_stream_of_agents =
      std::any_of(std::begin(kAgentStreams), std::end(kAgentStreams),
                  [&](std::string_view service) { return method.starts_with(service); });
  if (is_stream_of_agents) return AuditRule::kIfRefused;
  const std::string action = AuditedAction(method);
  if (Has(kReads, action)) return AuditRule::kIfRefused;
  if (Has(kLogReads, action)) {
    return audits_log_reads ? AuditRule::kAfterAnswer : AuditRule::kIfRefused;
  }
  return Has(kFrequent, action) ? AuditRule::kAfterAnswer : AuditRule::kBeforeAnswer;
}

}  // namespace muster::broker
