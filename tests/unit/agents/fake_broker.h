// A broker that does what the test says, over real gRPC on a Unix socket.
#ifndef MUSTER_TESTS_UNIT_AGENTS_FAKE_BROKER_H_
#define MUSTER_TESTS_UNIT_AGENTS_FAKE_BROKER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "tests/unit/agents/eventually.h"

namespace muster::agents {

struct BrokerState {
  // Set by the test.
  absl::Status refusal;  // the answer to a hello
  std::map<std::string, agent::v1::Assignment>
      wanted;           // sent on connection if the hello does not list them
  bool silent = false;  // heartbeats and events get no answer
  int heartbeat_ms = 1000;
  std::string instance = "k7m2";

  // The agent's messages.
  std::vector<agent::v1::AgentHello> hellos;
  size_t connections = 0;                   // that were welcomed
  std::vector<agent::v1::RunEvent> events;  // each number once, in order
  std::vector<agent::v1::AgentHeartbeat> heartbeats;
  std::vector<agent::v1::AgentAnswer> answers;
  int repeated_events = 0;
  bool gap = false;                         // a number was left out
  std::map<std::string, std::string> logs;  // by run key
  std::map<std::string, bool> complete;

  const agent::v1::RunEvent* Last(const std::string& run_key) const {
    for (size_t i = events.size(); i-- > 0;) {
      if (events[i].run_key() == run_key) return &events[i];
    }
    return nullptr;
  }
  bool Saw(const std::string& run_key, v1::RunState state) const {
    for (const agent::v1::RunEvent& event : events) {
      if (event.run_key() == run_key && event.state() == state) return true;
    }
    return false;
  }
  bool LogsComplete(const std::string& run_key) const {
    const agent::v1::RunEvent* last = Last(run_key);
    return last != nullptr && last->logs_complete();
  }
};

class FakeBroker {
 public:
  // Serves at `target` ("unix:PATH") until destroyed; the state outlives it, as a database does.
  FakeBroker(const std::string& target, Shared<BrokerState>* state);
  ~FakeBroker();

  // Sends to the agent that is connected, if there is one.
  void Send(const agent::v1::ConnectResponse& message);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_FAKE_BROKER_H_
