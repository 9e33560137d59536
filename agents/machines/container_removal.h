// Removing containers of which the supervisor is gone.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_
#define MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::machines {

// Returns the name that the containers of a run begin with.
std::string ContainerPrefix(std::string_view run_key);

// Bounds the time that all tools together may take: docker's waits for its daemon.
struct RemovalPatience {
  int64_t until_ms = 0;                     // by SteadyMilliseconds
  const std::atomic<bool>* stop = nullptr;  // set: no longer
};

// Returns whether the run's directory names containers.
bool MayHaveContainers(const std::string& run_directory);

// Removes the containers that the file in the run's directory names, with all that runs in them.
// The run itself can write there: what is not this run's is left alone. True: none is there any
// more, and the file is gone; false: one may be, as a tool failed or has not answered.
bool RemoveContainersOf(const std::string& run_directory, const RemovalPatience& patience);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTAINER_REMOVAL_H_
