// Simulates an agent as one process over a journal: the real agent core, killed and restarted at
// will, sometimes without its journal.
#ifndef MUSTER_TESTS_SIM_AGENT_H_
#define MUSTER_TESTS_SIM_AGENT_H_

#include <functional>
#include <memory>
#include <string>

#include "agents/core/agent_core.h"
#include "tests/sim/auditor.h"
#include "tests/sim/broker.h"
#include "tests/sim/cluster.h"
#include "tests/sim/link.h"
#include "tests/sim/world.h"

namespace muster::sim {

class SimAgent {
 public:
  SimAgent(World* world, Auditor* auditor, SimBroker* broker, SimCluster* cluster);

  void Start();
  // `loses_journal`: the next process begins with an empty one.
  void Crash(std::string_view why, bool loses_journal);
  // The agent cannot reach its broker for so long.
  void Isolate(absl::Duration time);
  bool is_up() const { return core_ != nullptr; }
  // Runs in its journal.
  size_t held() const { return journal_.runs.size(); }

 private:
  // Its clock does not jump while it runs, see AgentCore; a new process may find another time.
  absl::Time now() const { return world_.loop.now() + clock_offset_; }
  void Later(absl::Duration delay, std::function<void()> action);
  void Handle(agents::Input input);
  bool Commit(const agents::Output& out);
  void CarryOut(std::vector<agents::Effect> effects);
  void Tick();
  void Observe();
  void Dial();
  void HangUp();
  void NewJournal();
  // Wraps an answer so that it reaches only this process.
  template <typename Outcome>
  std::function<void(Outcome)> Answer(std::function<void(Outcome)> handle);

  void Do(agents::DoLaunch& effect);
  void Do(agents::DoLookup& effect);
  void Do(agents::DoFence& effect);
  void Do(agents::DoCancel& effect);
  void Do(agents::DoHold& effect);
  void Do(agents::DoNoteHold&) {}
  void Do(agents::ShipLogs& effect);
  void Do(agents::DoReadUsage& effect);
  void Do(agents::DoForget& effect);
  void Do(agents::DoAllowStarts&) {}
  void Do(agents::DoRenewLeases& effect) { cluster_.RenewLeases(effect.end - now()); }
  void Do(agents::SendToBroker& effect);
  void Do(agents::Redial& effect);
  void Do(agents::Stop& effect);

  World& world_;
  Auditor& auditor_;
  SimBroker& broker_;
  SimCluster& cluster_;
  agents::JournalContent journal_;
  absl::Duration clock_offset_;
  absl::Time isolated_until_ = absl::InfinitePast();  // in true time

  // ---- what dies with the process
  std::unique_ptr<agents::AgentCore> core_;
  uint64_t process_ = 0;
  std::shared_ptr<Link> link_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_AGENT_H_
