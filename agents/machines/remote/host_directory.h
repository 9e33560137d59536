// The directory on a host over SSH in which a cluster's agent has its files.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_DIRECTORY_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_DIRECTORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/host.h"

namespace muster::machines {

// Returns the directory of the host called `name`. `configured` is machines.host_directory; if
// empty, it is in the user's home there, which is asked for. UNAVAILABLE: the host could not be
// asked; FAILED_PRECONDITION: it has none, with the remedy.
absl::StatusOr<std::string> HostDirectory(const std::string& configured, const std::string& cluster,
                                          const std::string& name, hosts::Host* host,
                                          absl::Duration patience);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_DIRECTORY_H_
