// Names that the map of a cluster's scheduler calls holds besides calls.
#ifndef MUSTER_CONTRACT_SCHEDULER_CALLS_H_
#define MUSTER_CONTRACT_SCHEDULER_CALLS_H_

#include <string_view>

namespace muster::contract {

// The runs that the agent has launched in the same time, so that anybody can tell how many calls
// one takes.
inline constexpr std::string_view kLaunchedRuns = "launched runs";

}  // namespace muster::contract

#endif  // MUSTER_CONTRACT_SCHEDULER_CALLS_H_
