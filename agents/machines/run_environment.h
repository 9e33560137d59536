// The variables that setup and command see.
#ifndef MUSTER_AGENTS_MACHINES_RUN_ENVIRONMENT_H_
#define MUSTER_AGENTS_MACHINES_RUN_ENVIRONMENT_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/scheduling/hosts.h"
#include "agents/machines/scheduling/request.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// The variables that name the GPUs of a program. The machine sets them for every run, whatever the
// spec says.
inline constexpr std::string_view kCudaVariable = "CUDA_VISIBLE_DEVICES";
inline constexpr std::string_view kHipVariable = "HIP_VISIBLE_DEVICES";
inline constexpr std::string_view kRocrVariable = "ROCR_VISIBLE_DEVICES";

// Returns everything but these: a few variables of the agent's own environment (`base`, e.g. PATH
// and HOME), then what distributed programs read, then the user's, which win.
std::map<std::string, std::string> RunEnvironment(const agent::v1::Assignment& assignment,
                                                  const std::string& cluster,
                                                  const std::string& run_directory,
                                                  const std::map<std::string, std::string>& base);

// Returns the variables of one rank of several, each on a host of its own, without `base`: the host
// adds its own. `addresses` are the addresses of the hosts, by rank.
std::map<std::string, std::string> RankEnvironment(const agent::v1::Assignment& assignment,
                                                   const std::string& cluster,
                                                   const std::string& run_directory, size_t rank,
                                                   const std::vector<std::string>& addresses);

// Returns the variables of this process that a run may have. The rest may be secrets of the agent.
std::map<std::string, std::string> BaseEnvironment();
// The same for a run of another user, of whom muster-run-as knows the rest.
std::map<std::string, std::string> BaseEnvironmentOfUser();

// The names of the node's GPUs as the machine has them now, with commas.
std::string DeviceNames(const Capacity& capacity, const NodeAllocation& node);

// Returns "NAME=value" for the variables above, for the command alone: a run sees no GPU that it
// did not ask for. AMD's runtime hides what ROCR_VISIBLE_DEVICES does not name, and HIP numbers the
// rest anew, by either of the other two.
std::vector<std::string> DeviceVariables(const Capacity& capacity, const NodeAllocation& node);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_ENVIRONMENT_H_
