#include "agents/machines/remote/rank_spec.h"

#include "agents/core/job_storage.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_request.h"
#include "google/protobuf/util/time_util.h"

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

QueuedRun QueuedFrom(const agent::v1::Assignment& assignment, uint64_t order, bool held,
                     absl::Duration cancel_grace) {
  const v1::JobSpec& job = assignment.spec();
  const int64_t limit_ms =
      google::protobuf::util::TimeUtil::DurationToMilliseconds(job.time_limit());
  return {.run_key = assignment.run_key(),
          .priority = job.priority(),
          .order = order,
          .request = RequestOf(assignment),
          .time_limit = limit_ms == 0 ? absl::InfiniteDuration()
                                      : absl::Milliseconds(limit_ms) + cancel_grace,
          .held = held};
}

}  // namespace muster::machines
