// The rules of an agent's first message. Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_HELLO_H_
#define MUSTER_PROTO_CONTRACT_HELLO_H_

#include "absl/status/status.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::contract {

// INVALID_ARGUMENT that names the fields, where one breaks its rule. The broker checks the
// protocol's version before that.
absl::Status ValidateHello(const agent::v1::AgentHello& hello);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_HELLO_H_
