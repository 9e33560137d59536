// Partitions and nodes as slurmrestd tells them.
//
// INTERNAL: the answer has no such list, or something in it cannot be read.
#ifndef MUSTER_AGENTS_SLURM_REST_NODES_H_
#define MUSTER_AGENTS_SLURM_REST_NODES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/slurm/details.h"
#include "muster/v1/cluster.pb.h"

namespace muster::slurm {

// Answers about partitions and about nodes, put together.
absl::StatusOr<std::vector<v1::Pool>> RestPools(const nlohmann::json& partitions,
                                                const nlohmann::json& nodes);

// Returns those of the names that belong to nodes, in the order of the names.
absl::StatusOr<std::vector<std::string>> RestKnownNodes(const nlohmann::json& nodes,
                                                        const std::vector<std::string>& names);

// Read nodes and partitions as ParseNodes and ParsePartitions read them from scontrol;
// OverSubscribe, and some a PreemptMode, are not told.
absl::StatusOr<std::vector<v1::Node>> RestNodes(const nlohmann::json& nodes);
absl::StatusOr<std::vector<Partition>> RestPartitions(const nlohmann::json& partitions);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_NODES_H_
