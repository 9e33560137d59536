// Answers people's questions to the backend for hosts over SSH. Pure but for the time of day.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_ANSWERS_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_ANSWERS_H_

#include <string>

#include "agents/machines/remote/remote_scheduler.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// `cluster`: its name.
// Considers all hosts that are known, since a run may come to any: the one that can do the least
// decides.
ContainerRuntime ContainersOf(const RemoteScheduler::Load& load);

v1::Inventory InventoryOf(const RemoteScheduler::Load& load, const std::string& cluster);
v1::ClusterDetails DetailsOf(const RemoteScheduler::Load& load);
// Two lines for each host: the way there, and what it has.
v1::ClusterChecks ChecksOf(const RemoteScheduler::Load& load);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_ANSWERS_H_
