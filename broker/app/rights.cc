#include "broker/app/rights.h"

#include <fmt/format.h>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

enum class Reach : uint8_t { kAllJobs, kOwnJobs };

struct Right {
  Role role;
  UseCase use_case;
  Reach reach;
};

// A role may do only what this table lists.
constexpr Right kRights[] = {
    {Role::kOwner, UseCase::kSubmitJobs, Reach::kAllJobs},
    {Role::kOwner, UseCase::kReadJobs, Reach::kAllJobs},
    {Role::kOwner, UseCase::kChangeJobs, Reach::kAllJobs},
    {Role::kOwner, UseCase::kReadLogs, Reach::kAllJobs},
    {Role::kOwner, UseCase::kReadFiles, Reach::kAllJobs},
    {Role::kOwner, UseCase::kReadClusters, Reach::kAllJobs},
    {Role::kOwner, UseCase::kAskClusters, Reach::kAllJobs},
    {Role::kOwner, UseCase::kForgetClusters, Reach::kAllJobs},
    {Role::kOwner, UseCase::kAdmitClusters, Reach::kAllJobs},
    {Role::kOwner, UseCase::kBringFiles, Reach::kAllJobs},
    {Role::kOwner, UseCase::kDownloadFiles, Reach::kAllJobs},
    {Role::kSubmitter, UseCase::kSubmitJobs, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kReadJobs, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kChangeJobs, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kReadLogs, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kReadFiles, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kReadClusters, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kBringFiles, Reach::kOwnJobs},
    {Role::kSubmitter, UseCase::kDownloadFiles, Reach::kOwnJobs},
    {Role::kAgent, UseCase::kDownloadFiles, Reach::kOwnJobs},
};

store::Scope ScopeOf(Reach reach, const Principal& principal) {
  switch (reach) {
    case Reach::kAllJobs:
      return store::Scope::All();
    case Reach::kOwnJobs:
      return store::Scope::Of({}, {principal.user});
  }
  return store::Scope::Of({}, {});
}

}  // namespace

absl::StatusOr<store::Scope> Authorize(const Principal& principal, UseCase use_case) {
  for (const Right& right : kRights) {
    if (right.role == principal.role && right.use_case == use_case)
      return ScopeOf(right.reach, principal);
  }
  return contract::Error(absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
                         fmt::format("{} may not do this; ask the operator of the broker for the "
                                     "right",
                                     principal.user),
                         {{"user", principal.user}});
}

}  // namespace muster::broker
