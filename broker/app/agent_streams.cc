#include "broker/app/agent_streams.h"

#include <fmt/format.h>

#include "broker/engine/agent_sessions.h"
#include "contract/errors.h"

namespace muster::broker {

absl::Status CheckProtocol(uint32_t agent_version, uint32_t broker_version) {
  if (agent_version == broker_version) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "PROTOCOL_VERSION",
      fmt::format("the agent speaks protocol version {}, this broker {}; update the older one",
                  agent_version, broker_version));
}

absl::Status CheckConnected(const AgentSessions& agents, std::string_view cluster,
                            std::string_view journal_id) {
  if (agents.IsWelcomed(cluster, journal_id)) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NOT_CONNECTED",
      fmt::format("no agent of cluster \"{}\" with journal \"{}\" is connected; connect over "
                  "AgentLink first",
                  cluster, journal_id));
}

absl::Status CameTwice() {
  return contract::BadField("hello", "came twice; it is the first message, and only the first");
}

absl::Status MustBeFirst() {
  return contract::BadField("hello", "must be the first message of the stream");
}

absl::Status UnknownMessage() {
  return contract::BadField("message", "is not set, or is of a later protocol version");
}

}  // namespace muster::broker
