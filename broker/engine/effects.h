// Carries out what the core decided, once it is on disk: replies, messages to agents, wake-ups of
// watchers.
//
// CarryOut runs on the effects thread, which reads no disk. Assignments whose specs are not in
// memory take a detour through a thread that reads them, and later messages to the same agent go
// behind them. Changes of jobs that watchers have not seen yet take a detour through another
// thread, and all later changes go behind them. gRPC's threads open tickets; the table of them has
// a mutex of its own.
#ifndef MUSTER_BROKER_ENGINE_EFFECTS_H_
#define MUSTER_BROKER_ENGINE_EFFECTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/engine/agent_sessions.h"
#include "broker/engine/assignment_messages.h"
#include "broker/engine/change_feed.h"
#include "broker/engine/cluster_board.h"
#include "broker/engine/detour.h"
#include "broker/engine/use_board.h"
#include "broker/store/store.h"
#include "sync/mutex.h"

namespace muster::broker {

// Sends the answer to one request. Called once, on the effects thread; must not block.
using SubmitDone = std::function<void(absl::StatusOr<v1::SubmitJobsResponse>)>;
using StatusDone =
    std::function<void(absl::Status)>;  // answers a request that is carried out whole or not at all
// The result of a cancel or a hold of jobs that a filter chose.
struct ChosenJobs {
  std::vector<uint64_t> changed;
  bool is_stale = false;  // some had changed since they were chosen
};
using ChosenDone = std::function<void(absl::StatusOr<ChosenJobs>)>;
using JobsChanged = std::function<void(const core::JobsChanged&)>;

class Effects {
 public:
  Effects(const store::Store* store, ChangeFeed* feed, ClusterBoard* clusters, UseBoard* uses,
          AgentSessions* agents, JobsChanged jobs_changed);

  // They run on the main thread; Start comes before the first CarryOut, Stop after the last.
  void Start();
  void Stop();

  // ---- any thread

  template <typename Done>
  core::Ticket Expect(Done done) {
    const MutexLock lock(mutex_);
    const core::Ticket ticket = ++last_ticket_;
    replies_.emplace(ticket, std::move(done));
    return ticket;
  }
  // Drops a request that was not taken: its answer will not come.
  void Forget(core::Ticket ticket);

  // Answers all open requests: UNAVAILABLE, the outcome is not known. Call it when no CarryOut will
  // follow.
  void Abandon();

  // ---- effects thread

  void CarryOut(core::Output committed);

 private:
  using Reply = std::variant<SubmitDone, StatusDone, ChosenDone>;

  void Do(core::SubmitReply& effect);
  void Do(core::StatusReply& effect);
  void Do(core::SendToAgent& effect);
  void Do(core::SendAssignments& effect);
  void Do(core::CloseAgent& effect);
  void Do(core::JobsChanged& effect);

  // Gives the changes to the feed. False: the feed would have to read first, or other changes wait
  // for a read.
  bool ShowAtOnce(const core::Changes& changes, uint64_t last);
  // Gives the changes to the feed on the detour, and wakes watchers then.
  void ShowLater(core::Changes changes, std::vector<core::JobsChanged> news, uint64_t last);

  std::optional<Reply> TakeAnyReply(core::Ticket ticket);
  template <typename Done>
  Done TakeReply(core::Ticket ticket);

  // ---- effects thread, or the detour of assignments; they do nothing if the agent has gone
  void Assign(core::SessionId session, std::vector<agent::v1::Assignment> assignments);
  void Send(core::SessionId session, agent::v1::ConnectResponse message);
  void Close(core::SessionId session, const absl::Status& status);

  const store::Store* const store_;
  ChangeFeed* const feed_;
  ClusterBoard* const clusters_;
  UseBoard* const uses_;
  AgentSessions* const agents_;
  const JobsChanged jobs_changed_;

  AssignmentMessages assignments_;  // effects thread
  Detour assigning_;                // messages to agents, by session
  Detour showing_;                  // changes for watchers

  Mutex mutex_;
  core::Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<core::Ticket, Reply> replies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_EFFECTS_H_
