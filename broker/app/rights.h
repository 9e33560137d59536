// Decides what a principal may do, by one table of roles and use cases. Pure; any thread.
#ifndef MUSTER_BROKER_APP_RIGHTS_H_
#define MUSTER_BROKER_APP_RIGHTS_H_

#include <cstdint>

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
};

// Returns the jobs that the principal may do this with; a request's scope is made nowhere else.
// PERMISSION_DENIED, NOT_ALLOWED: no job at all.
absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RIGHTS_H_
