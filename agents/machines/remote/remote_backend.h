// The backend for machines that the agent reaches over SSH.
//
// The same queue as on one machine, over all hosts; a run's nodes are on as many hosts, all or
// none. On each host muster-supervisor does what the agent itself does on its own machine.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_BACKEND_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/machines/machines.h"

namespace muster::machines {

// `config` names hosts and the supervisor's program; the directories, for the agent's
// records of runs and of hosts, exist. Waits, for a bounded time, until each host has answered. A
// host that cannot be reached is no error.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateRemoteBackend(
    const MachinesConfig& config, const std::string& runs_directory,
    const std::string& hosts_directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_BACKEND_H_
