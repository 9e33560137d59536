#include "agents/machines/remote/rank_spec.h"

#include "agents/core/job_storage.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_environment.h"

namespace muster::machines {

absl::StatusOr<agent::v1::Assignment> OnHost(const agent::v1::Assignment& assignment,
                                             const std::string& cluster,
                                             const std::string& directory) {
  agent::v1::Assignment own = assignment;
  // A URI, because a bare path might be on the user's machine.
  if (own.spec().results_directory().empty())
    own.mutable_spec()->set_results_directory("lustre://" + directory + "/" + kResultsDirectory);
  return agents::OnCluster(
      own, {.cluster = {.cluster = cluster, .is_remote = true, .roots = {}, .relative_to = {}},
            .results_root = {},
            .container_mounts = {directory}});
}

RunSpec RankSpec(const agent::v1::Assignment& assignment, const std::string& cluster,
                 const std::string& directory, size_t rank,
                 const std::vector<std::string>& addresses, const RunRules& rules) {
  return MakeRunSpec(assignment, directory,
                     RankEnvironment(assignment, cluster, directory, rank, addresses), rules);
}

}  // namespace muster::machines
