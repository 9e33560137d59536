// The agent of one cluster, as those see it who have a question for it.
#ifndef MUSTER_BROKER_APP_ASKED_AGENT_H_
#define MUSTER_BROKER_APP_ASKED_AGENT_H_

#include <chrono>
#include <functional>

#include "absl/status/statusor.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::broker {

class AskedAgent {
 public:
  using Done = std::function<void(absl::StatusOr<agent::v1::AgentAnswer>)>;
  virtual ~AskedAgent() = default;
  // UNAVAILABLE: the agent is not connected, or went away; DEADLINE_EXCEEDED: no answer came in
  // time; RESOURCE_EXHAUSTED: too many questions wait, or the answer is too large; other errors are
  // the agent's. Does not block; the id is set here.
  virtual void Ask(agent::v1::AgentQuestion question,
                   std::chrono::steady_clock::time_point deadline, Done done) = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ASKED_AGENT_H_
