// Reads the files of runs on hosts over SSH, to be sent to people.
//
// Each opening has a connection of its own to the host: a copy, however large, holds up neither the
// commands nor the logs of that host, and a host that hangs holds up only its copy.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_RUN_FILES_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_RUN_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/run_files.h"
#include "agents/machines/machines.h"

namespace muster::machines {

// `runs_directory`: the agent's own records of runs (launch_record.h). They say where a rank is;
// once they are gone, its node does. FAILED_PRECONDITION: neither does (RUN_HAS_NO_FILES), or the
// host is not in the file of hosts any more (HOST_NOT_CONFIGURED).
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenRemoteRunFiles(
    const MachinesConfig& config, const std::string& runs_directory, const agents::RankOfRun& of);
// Opens the same for a results directory elsewhere on the rank's host.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenRemoteResults(
    const MachinesConfig& config, const std::string& runs_directory, const agents::RankOfRun& of);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_REMOTE_RUN_FILES_H_
