// Decides what a principal may do, by one table of roles, use cases and jobs. Pure; any thread.
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
  kChangeJobs,  // cancel, hold, release, update, signal
  kReadLogs,
  kReadFiles,  // the files that a run left on its nodes
  kReadClusters,
  kAskClusters,  // check and describe: the agent runs commands for it
  kForgetClusters,
  kCordonClusters,
  kAdmitClusters,  // invite and revoke
  kBringFiles,     // find and upload by digest; no job is concerned
  kDownloadFiles,  // by digest; no job is concerned
  kWhoAmI,         // no job is concerned
  kLogIn,          // how to get a credential; open also to those who have none
  kManageTokens,   // make, list and revoke
  kManageSecrets,  // set, list and delete; secret_rights.h has those of projects
  kReadProjects,
  kManageMembers,   // of a project
  kManageProjects,  // make, change and archive
  kReadAudit,       // list and verify; no job is concerned
};

// The relation of a job, or of a project, to the caller.
enum class Relation : uint8_t {
  kOwnHere,       // the caller's own job, in a project in which the caller has the role
  kOfProject,     // another user's job in such a project
  kOfNoProject,   // another user's job in a project in which the caller has no role
  kOwnElsewhere,  // the caller's own job in such a project
};
inline constexpr Relation kRelations[] = {Relation::kOwnHere, Relation::kOfProject,
                                          Relation::kOfNoProject, Relation::kOwnElsewhere};

// The call of a service, and the use case that it is.
struct RpcUseCase {
  std::string_view rpc;  // "JobsService.SubmitJob"
  UseCase use_case;
};
// Returns every call of the services that clients use.
std::span<const RpcUseCase> RpcUseCases();

// Returns the jobs that the principal may do this with, by the role and by memberships together; a
// request's scope is made nowhere else.
// PERMISSION_DENIED, NOT_ALLOWED: no job at all. UNAUTHENTICATED: the principal's refusal.
absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case);
absl::Status NotAllowed(const Principal& principal);
// PERMISSION_DENIED, RIGHTS_CHANGED: ends a stream that began with other rights than its caller has
// now.
absl::Status RightsChanged();

// Returns whether the table lets a role do this with such a job: a role over the whole broker, or
// one in a project.
bool Allows(Role role, bool in_project, UseCase use_case, Relation relation);

// Returns whether `role` may do all that `other` may, with at least the same jobs.
bool Includes(Role role, Role other);

// Returns the tables of calls and roles, over the whole broker and in a project, as Markdown for
// docs/rights.md.
std::string RightsTable();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RIGHTS_H_
