#include "broker/app/file_viewer.h"

#include <string>
#include <vector>

namespace muster::broker {

absl::StatusOr<files::Viewer> FileViewer(const Principal& principal, UseCase use_case) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, use_case);
  if (!scope.ok()) return scope.status();
  if (scope->is_all()) return files::Viewer::All(principal.user);
  std::vector<std::string> projects;
  for (const auth::Membership& one : principal.memberships) {
    if (Allows(one.role, /*in_project=*/true, use_case, Relation::kOfProject))
      projects.push_back(one.project);
  }
  return files::Viewer::Of(principal.user, projects);
}

}  // namespace muster::broker
