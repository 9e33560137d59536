// The kinds of clusters that an agent can speak for: one row each.
#ifndef MUSTER_AGENTS_APP_KINDS_H_
#define MUSTER_AGENTS_APP_KINDS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "agents/app/agent_config.h"
#include "agents/core/backend.h"
#include "agents/core/run_files.h"
#include "agents/files/job_files.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

struct Kind {
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
  // The defaults of two settings: launches at the same time, and runs that the cluster has.
  int launch_parallelism = 1;
  uint32_t max_active_runs = 1000;
  // `files`: null for a backend that only checks itself.
  absl::StatusOr<std::unique_ptr<Backend>> (*make_backend)(const AgentConfig& config,
                                                           uploads::JobFiles* files);
  // Opens the files of runs. Null: they cannot be fetched.
  OpenRunFiles (*run_files)(const AgentConfig& config);
  // Opens the results directories that runs have elsewhere. Null: they cannot be fetched.
  OpenRunFiles (*run_results)(const AgentConfig& config);
  // Relays the files of runs, in the place of both. Null: they are read here, or cannot be fetched.
  RelayRunFiles (*relay_files)(const AgentConfig& config) = nullptr;
};

// `kind`: one of those that the setting `kind` takes.
const Kind& KindOf(v1::ClusterKind kind);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_KINDS_H_
