// Removing containers of which the supervisor is gone.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_
#define MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_

#include <string>
#include <string_view>

namespace muster::machines {

// The name that the containers of a run begin with.
std::string ContainerPrefix(std::string_view run_key);

// Removes the containers that the file in the run's directory names, with all that runs in them.
// The run itself can write there: what is not this run's is left alone.
void RemoveContainersOf(const std::string& run_directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_
