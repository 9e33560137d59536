// Runs muster-broker init, which makes what a broker needs before it listens on a network.
#ifndef MUSTER_BROKER_RPC_INIT_COMMAND_H_
#define MUSTER_BROKER_RPC_INIT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::broker {

// Makes STATE/ca with a CA and the broker's certificate for `names`, this host's name and loopback.
// Returns what to tell the operator. ALREADY_EXISTS: there is a CA.
absl::StatusOr<std::string> InitBroker(const std::string& state_dir, std::vector<std::string> names,
                                       absl::Time now);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_INIT_COMMAND_H_
