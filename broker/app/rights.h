// Decides what a principal may do, by one table of roles and use cases. Pure; any thread.
#ifndef MUSTER_BROKER_APP_RIGHTS_H_
#define MUSTER_BROKER_APP_RIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/store/scope.h"

namespace muster::broker {

enum class UseCase : uint8_t {
  kSubmitJobs,  // also PlanJob and RerunJobs
  kReadJobs,    // get, list, count, transitions, watch
  kChangeJobs,  // cancel, hold, release, update
  kReadLogs,
  kReadFiles,  // the files that a run left on its nodes
  kReadClusters,
  kAskClusters,  // check and describe: the agent runs commands for it
  kForgetClusters,
  kAdmitClusters,  // invite and revoke
  kBringFiles,     // find and upload by digest; no job is concerned
  kDownloadFiles,  // by digest; no job is concerned
  kWhoAmI,         // no job is concerned
  kManageTokens,   // make, list and revoke
  kReadAudit,      // list and verify; no job is concerned
};

// The call of a service, and the use case that it is.
struct RpcUseCase {
  std::string_view rpc;  // "JobsService.SubmitJob"
  UseCase use_case;
};
// Every call of the services that clients use.
std::span<const RpcUseCase> RpcUseCases();

// Returns the jobs that the principal may do this with; a request's scope is made nowhere else.
// PERMISSION_DENIED, NOT_ALLOWED: no job at all. UNAUTHENTICATED: the principal's refusal.
absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case);
absl::Status NotAllowed(const Principal& principal);

// Returns whether `role` may do all that `other` may, with at least the same jobs.
bool Includes(Role role, Role other);

// The table of calls and roles as Markdown, for docs/rights.md.
std::string RightsTable();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RIGHTS_H_
