// What a run asks for, once the cluster has had its say.
#include <algorithm>

#include "agents/slurm/backend.h"
#include "agents/slurm/profile.h"

namespace muster::slurm {

absl::StatusOr<v1::Assignment> SlurmBackend::Complete(const v1::Assignment& assignment) {
  v1::Assignment complete = assignment;
  absl::StatusOr<v1::JobSpec> spec = ApplyProfile(assignment.spec(), config_.profile);
  if (!spec.ok()) return spec.status();
  *complete.mutable_spec() = *std::move(spec);
  if (assignment.excluded_nodes().empty()) return complete;
  const std::vector<std::string> names(assignment.excluded_nodes().begin(),
                                       assignment.excluded_nodes().end());
  const absl::StatusOr<std::vector<std::string>> known = scheduler_->KnownNodes(names);
  if (!known.ok()) return known.status();
  complete.clear_excluded_nodes();
  for (const std::string& name : names) {
    if (std::find(known->begin(), known->end(), name) != known->end())
      complete.add_excluded_nodes(name);
  }
  return complete;
}

}  // namespace muster::slurm
