// Turns the clusters of the remote broker into the pools of one cluster. Pure; any thread.
#ifndef MUSTER_AGENTS_MUSTER_INVENTORY_H_
#define MUSTER_AGENTS_MUSTER_INVENTORY_H_

#include <string>
#include <vector>

#include "agents/muster/remote.h"
#include "muster/v1/clusters_service.pb.h"
#include "muster/v1/identity_service.pb.h"

namespace muster::remote {

// Returns whether jobs may go to the remote broker's cluster of that name.
bool IsUsed(const RemoteConfig& config, const std::string& cluster);

// `clusters` are all clusters of the remote broker. The caller sets the inventory's time.
v1::Inventory InventoryOf(const RemoteConfig& config, const v1::WhoAmIResponse& who,
                          const std::vector<v1::Cluster>& clusters);

// Adds the details that the agent of one of them reports.
void AddDetails(const std::string& cluster, const v1::ClusterDetails& there,
                v1::ClusterDetails* details);

// Makes the preflight from the remote broker's answers. `project` is the answer to a job that was
// only checked there.
v1::ClusterChecks ChecksOf(const RemoteConfig& config,
                           const absl::StatusOr<v1::WhoAmIResponse>& who,
                           const absl::Status& project,
                           const absl::StatusOr<std::vector<v1::Cluster>>& clusters);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_INVENTORY_H_
