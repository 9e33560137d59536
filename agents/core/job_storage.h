// Makes paths of this cluster from the storage URIs of a job's data and results. Pure.
#ifndef MUSTER_AGENTS_CORE_JOB_STORAGE_H_
#define MUSTER_AGENTS_CORE_JOB_STORAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "contract/storage_uri.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

struct JobStorage {
  contract::ClusterStorage cluster;
  // Jobs that name no results directory get one of their number in this absolute one. Empty: they
  // have none.
  std::string results_root;
  // The directories that every container of the cluster shows under the same path.
  std::vector<std::string> container_mounts;
};

// Returns the assignment with paths of this cluster in place of URIs: inputs, results_directory (by
// its default, too), and each value of a variable and each word of a command that is a lustre:// or
// slurm:// URI as a whole. With an image, inputs (read-only) and results are mounted where the
// container would not show them. INVALID_ARGUMENT names the field and has the remedy.
absl::StatusOr<agent::v1::Assignment> OnCluster(const agent::v1::Assignment& assignment,
                                                const JobStorage& storage);

// Returns whether all inputs of such an assignment are on the host; a link counts if what it leads
// to is there. INVALID_ARGUMENT names those that are not, or that its user may not see. Other
// errors: the host could not look. Blocks for two round trips.
absl::Status CheckInputs(const v1::JobSpec& spec, hosts::Host* host);

// Returns a plan's line about such inputs; nothing if there are none. Blocks as CheckInputs does.
std::optional<v1::ClusterCheck> PlanInputs(const v1::JobSpec& spec, hosts::Host* host);

// Returns the fault of a job, for people: the first "FIELD: why" of an INVALID_ARGUMENT; else the
// message.
std::string WhatIsWrong(const absl::Status& status);

// Makes the results directory of such an assignment, if it has one. INVALID_ARGUMENT: its user may
// not. Other errors: the host could not try.
absl::Status MakeResultsDirectory(const v1::JobSpec& spec, hosts::Host* host);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_JOB_STORAGE_H_
