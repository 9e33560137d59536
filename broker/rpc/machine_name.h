// The name of the machine that the broker runs on.
#ifndef MUSTER_BROKER_RPC_MACHINE_NAME_H_
#define MUSTER_BROKER_RPC_MACHINE_NAME_H_

#include <string>

namespace muster::broker {

// Returns the name as the machine has it. Empty: it has none that a certificate could have.
std::string MachineName();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_MACHINE_NAME_H_
