#include "tests/bench/tools/sim_agent.h"

#include <utility>

#include "clients/cpp/client.h"

namespace muster::bench {

SimAgent::SimAgent(agents::Dialer* dialer, std::string cluster, uint32_t max_active_runs,
                   OnAssignments on_assignments)
    : dialer_(dialer),
      cluster_(std::move(cluster)),
      journal_id_(client::NewRequestId()),
      max_active_runs_(max_active_runs),
      on_assignments_(std::move(on_assignments)) {}

bool SimAgent::Connect(absl::Duration patience) {
  auto answered = [this] { std::call_once(answered_once_, [this] { answered_.Notify(); }); };
  link_ = dialer_->DialControl({
      .on_message =
          [this, answered](agent::v1::ConnectResponse message) {
            if (message.has_welcome()) {
              welcomed_ = true;
              answered();
            }
            OnMessage(message);
          },
      .on_end = [answered](absl::Status) { answered(); },
  });
  agent::v1::ConnectRequest request;
  agent::v1::AgentHello* hello = request.mutable_hello();
  hello->set_protocol_version(1);
  hello->set_cluster(cluster_);
  hello->set_kind(v1::CLUSTER_KIND_MACHINES);
  hello->set_agent_version("bench");
  hello->set_journal_id(journal_id_);
  hello->set_max_active_runs(max_active_runs_);
  hello->mutable_inventory()->set_identity(cluster_);
  v1::Pool* pool = hello->mutable_inventory()->add_pools();
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  v1::NodeGroup* nodes = pool->add_node_groups();
  // There is room for all runs that any row has at the same time, so that none waits for it.
  nodes->set_count(1000);
  nodes->set_usable_count(1000);
  nodes->set_cpus(1000);
  nodes->set_memory_bytes(uint64_t{1} << 40);
  link_->Send(std::move(request));
  return answered_.WaitForNotificationWithTimeout(patience) && welcomed_;
}

void SimAgent::OnMessage(const agent::v1::ConnectResponse& message) {
  if (message.has_assignments()) on_assignments_(message.assignments());
  link_->Handled();
}

bool SimAgent::Send(agent::v1::RunEvents events) {
  std::lock_guard lock(mutex_);
  uint64_t sequence = next_sequence_;
  for (agent::v1::RunEvent& event : *events.mutable_events()) event.set_sequence(sequence++);
  agent::v1::ConnectRequest request;
  *request.mutable_events() = std::move(events);
  if (link_->Send(std::move(request)) != agents::ControlLink::Sent::kYes) return false;
  next_sequence_ = sequence;
  return true;
}

bool SimAgent::Beat() {
  agent::v1::ConnectRequest request;
  request.mutable_heartbeat();
  return link_->Send(std::move(request)) == agents::ControlLink::Sent::kYes;
}

}  // namespace muster::bench
