// Checks that jobs go only into projects that the caller may use, and ask only for what these
// allow. Any thread.
#ifndef MUSTER_BROKER_APP_PROJECT_LIMITS_H_
#define MUSTER_BROKER_APP_PROJECT_LIMITS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "broker/app/principal.h"
#include "broker/app/rights.h"
#include "broker/app/services.h"
#include "broker/auth/project_table.h"
#include "broker/store/scope.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::broker {

// Returns the projects at this moment, "default" alone without a file of projects. Never null.
std::shared_ptr<const auth::ProjectTable> ProjectsOf(const Services& services);

// Returns the caller with the memberships that these projects give. Only a known caller has
// projects: no client over TCP without a credential, and no agent.
Principal WithMemberships(const auth::ProjectTable& projects, Principal principal);

// Watches over the rights of a stream's caller. Owner: the stream's source.
class StreamRights {
 public:
  StreamRights(const Services& services, Principal principal, UseCase use_case, store::Scope scope)
      : services_(services),
        principal_(std::move(principal)),
        use_case_(use_case),
        scope_(std::move(scope)) {}

  // RightsChanged: the caller has other rights than when the stream began.
  absl::Status Check();

 private:
  const Services services_;
  const Principal principal_;
  const UseCase use_case_;
  const store::Scope scope_;
  std::shared_ptr<const auth::ProjectTable>
      seen_;  // the projects that were looked at last, or null
};

// Checks one job that comes in; `spec` is normalized. `scope` is that of kSubmitJobs, and `prefix`
// goes before the names of fields: "requests[3].spec.".
// PERMISSION_DENIED, PROJECT_NOT_ALLOWED: the caller may submit nothing there; the answer does not
// tell whether there is such a project. NOT_FOUND, NO_SUCH_PROJECT, to callers with a role over the
// whole broker. FAILED_PRECONDITION, PROJECT_ARCHIVED. INVALID_ARGUMENT: fields that ask for what
// the project may not use.
absl::Status CheckProject(const auth::ProjectTable& projects, const store::Scope& scope,
                          const Principal& principal, const v1::JobSpec& spec,
                          std::string_view prefix);

// Returns whether a limit takes an image, given as its user wrote it: "nvcr.io/nvidia" takes
// "nvcr.io/nvidia/pytorch:24.01", and not "nvcr.io/nvidia-labs/x".
bool AllowsImage(const std::string& allowed, std::string_view image);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PROJECT_LIMITS_H_
