// Plays an agent without a cluster: takes assignments over a real connection and says what it is
// told to say of them.
#ifndef MUSTER_TESTS_BENCH_TOOLS_SIM_AGENT_H_
#define MUSTER_TESTS_BENCH_TOOLS_SIM_AGENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "agents/core/broker_link.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::bench {

class SimAgent {
 public:
  // Called by gRPC's threads; must not block.
  using OnAssignments = std::function<void(const agent::v1::Assignments&)>;

  SimAgent(agents::Dialer* dialer, std::string cluster, uint32_t max_active_runs,
           OnAssignments on_assignments);

  // Dials and sends the hello. False: the broker cannot be reached, or refused; try again with a
  // new object.
  bool Connect(absl::Duration patience);
  // Numbers the events and sends them. False: too much is queued; nothing was taken.
  bool Send(agent::v1::RunEvents events);
  bool Beat();

  std::string journal_id() const { return journal_id_; }

 private:
  void OnMessage(const agent::v1::ConnectResponse& message);

  agents::Dialer* const dialer_;
  const std::string cluster_;
  const std::string journal_id_;
  const uint32_t max_active_runs_;
  const OnAssignments on_assignments_;
  absl::Notification answered_;  // welcomed, or the link ended
  std::once_flag answered_once_;
  bool welcomed_ = false;  // set before answered_

  std::mutex mutex_;
  uint64_t next_sequence_ = 1;

  std::unique_ptr<agents::ControlLink> link_;  // last: its callbacks use the rest
};

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_SIM_AGENT_H_
