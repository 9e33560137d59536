// Simulates a broker as one process over a disk: the real core in the engine's real loop, and a
// real store, killed and restarted at will.
//
// Inputs are handled in batches; what the core decides waits for a commit that takes some time,
// together with what is decided meanwhile; only then are the effects carried out, one by one. A
// crash may strike between any two of these.
#ifndef MUSTER_TESTS_SIM_BROKER_H_
#define MUSTER_TESTS_SIM_BROKER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/core/core.h"
#include "broker/engine/assignment_messages.h"
#include "broker/engine/commit_step.h"
#include "broker/engine/core_loop.h"
#include "broker/engine/waiting_output.h"
#include "broker/store/memory/memory_store.h"
#include "tests/sim/auditor.h"
#include "tests/sim/link.h"
#include "tests/sim/world.h"

namespace muster::sim {

class SimBroker {
 public:
  using SubmitDone = std::function<void(absl::StatusOr<v1::SubmitJobsResponse>)>;
  using StatusDone = std::function<void(absl::Status)>;

  SimBroker(World* world, Auditor* auditor);

  void Start();
  void Crash(std::string_view why);
  bool is_up() const { return loop_.has_value(); }
  const store::Store& store() const { return store_; }

  // Null: nobody listens.
  std::shared_ptr<Link> Dial();
  // The answer may never come. Not while the broker is down.
  void Submit(core::Submit request, SubmitDone done);
  void Cancel(core::Cancel request, StatusDone done);
  void Hold(core::Hold request, StatusDone done);
  void Move(core::Move request, StatusDone done);
  void Cordon(core::SetCordon request, StatusDone done);

  // The clock of its machine jumps, which its loop notices.
  void JumpClock(absl::Duration by);

  // One connection breaks.
  void CutSomeLink();

 private:
  absl::Time now() const { return world_.loop.now() + clock_offset_; }
  // Runs `action` later unless this process has died by then.
  void Later(absl::Duration delay, std::function<void()> action);
  broker::Instant Now() const;
  void CheckInvariants();
  void Take(core::Input input);
  // Plans the loop's next turn, in place of the one that was planned.
  void TurnAfter(absl::Duration delay);
  void Turn();
  void OnHandled(const core::Input& input, const broker::CoreLoop::Handled& handled);
  void CommitLater();
  void CommitWaiting();
  // Returns an error if the process has died in it.
  absl::Status Commit(core::Changes changes);
  void Store(const core::Changes& changes);
  // The effects have a thread of their own: the next commit may come before them.
  void Post(core::Output committed);
  void CarryOutLater();
  void CarryOutNext();
  void CarryOut(core::Output output);

  void OnMessage(core::SessionId session, agent::v1::ConnectRequest message);
  // Tells whether a report is from a session that no longer counts.
  bool IsStale(const core::Input& input) const;
  void Track(const core::Input& input, const core::Output& out, size_t effects_before);

  void Do(core::SubmitReply& effect);
  void Do(core::StatusReply& effect);
  void Do(core::SendToAgent& effect);
  void Do(core::SendAssignments& effect);
  void Do(core::CloseAgent& effect);
  void Do(core::JobsChanged&) {}

  World& world_;
  Auditor& auditor_;
  store::MemoryStore store_;
  absl::Duration clock_offset_;

  // ---- what dies with the process
  std::optional<broker::CoreLoop> loop_;
  std::optional<broker::AssignmentMessages> assignments_;
  uint64_t process_ = 0;
  uint64_t next_turn_ = 0;
  std::vector<core::Input> inbox_;
  broker::WaitingOutput waiting_;
  bool commit_is_due_ = false;
  std::deque<core::Output> committed_;  // and not carried out
  std::map<core::SessionId, std::shared_ptr<Link>> links_;
  std::map<core::Ticket, SubmitDone> submits_;
  std::map<core::Ticket, StatusDone> wishes_;  // cancels, holds and moves
  // The auditor's view of who speaks for a cluster, from what the core has sent.
  std::map<core::SessionId, std::string> greeting_;  // said hello
  std::map<std::string, core::SessionId> current_;

  core::Ticket last_ticket_ = 0;
  core::SessionId last_session_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_BROKER_H_
