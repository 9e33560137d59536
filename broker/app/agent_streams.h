// Begins each stream that an agent opens beside its connection: checks that both sides speak the
// same protocol, and that the agent is the one that speaks for its cluster.
#ifndef MUSTER_BROKER_APP_AGENT_STREAMS_H_
#define MUSTER_BROKER_APP_AGENT_STREAMS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace muster::broker {

class AgentSessions;

// FAILED_PRECONDITION, PROTOCOL_VERSION: the versions differ.
absl::Status CheckProtocol(uint32_t agent_version, uint32_t broker_version);

// FAILED_PRECONDITION, NOT_CONNECTED: the cluster has no agent with this journal, or another agent
// has replaced it.
absl::Status CheckConnected(const AgentSessions& agents, std::string_view cluster,
                            std::string_view journal_id);

// A stream's first message is its only hello.
absl::Status CameTwice();
absl::Status MustBeFirst();
// Makes the error for a message that this broker does not know.
absl::Status UnknownMessage();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_AGENT_STREAMS_H_
