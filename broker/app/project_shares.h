// The shares and quotas of projects in requests and answers. Any thread.
#ifndef MUSTER_BROKER_APP_PROJECT_SHARES_H_
#define MUSTER_BROKER_APP_PROJECT_SHARES_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "broker/app/services.h"
#include "broker/auth/project_table.h"
#include "contract/errors.h"
#include "contract/project_shares.h"
#include "muster/v1/projects_service.pb.h"

namespace muster::broker {

// Read a field; what is wrong with it goes into `errors`.
uint32_t TakeWeight(uint32_t weight, contract::FieldErrors* errors);
contract::Quota TakeQuota(const std::string& field, const v1::Quota& quota,
                          contract::FieldErrors* errors);

// Checks that `parent` can be the parent of the project `name`. An empty one can.
absl::Status CheckParent(const auth::ProjectTable& projects, const std::string& name,
                         const std::string& parent);
// FAILED_PRECONDITION, PROJECT_HAS_CHILDREN: the project cannot be archived.
absl::Status CheckHasNoChildren(const auth::ProjectTable& projects, const std::string& name);

void PutShare(const contract::ProjectShare& share, v1::Project* out);
// Puts what the project uses now into an answer, as of the latest commit.
void PutUse(const Services& services, const auth::ProjectTable& projects, v1::Project* out);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PROJECT_SHARES_H_
