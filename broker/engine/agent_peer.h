// Declares the broker's end of one agent's connection; the RPC layer implements it.
#ifndef MUSTER_BROKER_ENGINE_AGENT_PEER_H_
#define MUSTER_BROKER_ENGINE_AGENT_PEER_H_

#include <chrono>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::broker {

// All methods may be called from any thread and do not block.
class AgentPeer {
 public:
  virtual ~AgentPeer() = default;

  // Queues a message. False: the agent is too slow and its queue is full; the caller closes the
  // connection, and the next one repairs what was missed.
  virtual bool Send(agent::v1::ConnectResponse message) = 0;
  // Ends the connection once the queued messages have been sent.
  virtual void Close(const absl::Status& status) = 0;
  // The core has handled one more message of this agent.
  virtual void Handled() = 0;

  using Answered = std::function<void(absl::StatusOr<agent::v1::AgentAnswer>)>;
  // UNAVAILABLE: the agent is not connected, or went away; DEADLINE_EXCEEDED: no answer came in
  // time; RESOURCE_EXHAUSTED: too many questions wait, or the answer is too large; other errors are
  // the agent's. The id is set here.
  virtual void Ask(agent::v1::AgentQuestion question,
                   std::chrono::steady_clock::time_point deadline, Answered answered) = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_AGENT_PEER_H_
