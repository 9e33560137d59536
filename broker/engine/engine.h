// Runs the core: gives it inputs in batches, and has its decisions committed and carried out.
//
//   any thread --inbox--> core thread (core::Core) --waiting output--> store thread (Store)
//     --committed output--> effects thread (Effects)
//
// All methods may be called from any thread and none blocks, except Start and Stop (main thread).
#ifndef MUSTER_BROKER_ENGINE_ENGINE_H_
#define MUSTER_BROKER_ENGINE_ENGINE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/engine/agent_sessions.h"
#include "broker/engine/carrier.h"
#include "broker/engine/change_feed.h"
#include "broker/engine/change_tail.h"
#include "broker/engine/cluster_board.h"
#include "broker/engine/committer.h"
#include "broker/engine/core_loop.h"
#include "broker/engine/effects.h"
#include "broker/engine/gauge.h"
#include "broker/engine/inbox.h"
#include "broker/engine/stats.h"
#include "broker/engine/use_board.h"
#include "broker/store/store.h"
#include "contract/place_limits.h"
#include "contract/project_shares.h"
#include "sync/mutex.h"

namespace muster::broker {

// Reads this machine's clocks.
Instant Now();

struct EngineOptions {
  // affects behaviour
  size_t max_waiting_jobs = 20'000;          // submitted but not yet handled; about 0.2 s of work
  size_t max_waiting_job_bytes = 256 << 20;  // size of their specs
  size_t max_waiting_requests = 4096;        // cancels, holds, edits
  absl::Duration retry_after = absl::Milliseconds(200);  // told to a refused client
  // affects performance
  size_t batch_items = 4096;  // jobs or events of each lane in one batch
  absl::Duration tick_interval =
      absl::Milliseconds(250);  // also the longest that a heartbeat waits
  Committer::Options committer;
  ChangeTail::Options changes;
  absl::Duration stats_interval = absl::Minutes(1);  // the least time between two reports
  // Reports the stats if any total has changed; called on the core thread, must not block.
  std::function<void(const Stats& stats, const Stats::Totals& before)> report_stats = LogStats;
  // The clock, read on the core thread; tests have their own.
  std::function<Instant()> clock = Now;
};

class Engine {
 public:
  // `on_failure` is called on the store thread: the store has failed and the process must end.
  Engine(EngineOptions options, std::unique_ptr<core::Core> core, store::Store* store,
         JobsChanged jobs_changed, Committer::OnFailure on_failure);
  ~Engine();

  void Start();
  // Handles, commits and carries out what was taken; refuses the rest.
  void Stop();

  // ---- requests of clients. `done` is called once: on the effects thread, or at once with
  // RESOURCE_EXHAUSTED or UNAVAILABLE if the request was not taken.

  void Submit(core::Submit request, SubmitDone done);
  void Cancel(core::Cancel request, StatusDone done);
  void Hold(core::Hold request, StatusDone done);
  void Move(core::Move request, StatusDone done);
  // Do the same for requests with chosen_at.
  void CancelChosen(core::Cancel request, ChosenDone done);
  void HoldChosen(core::Hold request, ChosenDone done);
  void MoveChosen(core::Move request, ChosenDone done);
  void Edit(core::Edit request, StatusDone done);
  void ForgetCluster(std::string name, StatusDone done);
  void SetCordon(core::SetCordon request, StatusDone done);
  // `done` is told once no run is assigned any more that breaks the limits.
  void SetPlaceLimits(std::shared_ptr<const contract::PlaceLimits> limits, StatusDone done);
  // `done` is told once no run is assigned any more that breaks a quota.
  void SetShares(std::shared_ptr<const contract::ProjectShares> shares, StatusDone done);
  // Housekeeping deletes jobs that have ended.
  void DeleteJobs(std::vector<uint64_t> jobs, StatusDone done);

  // ---- agents. Each message that was handed over is answered with one AgentPeer::Handled.

  core::SessionId Connect(agent::v1::AgentHello hello, std::shared_ptr<AgentPeer> peer);
  void Report(core::SessionId session, agent::v1::RunEvents events,
              std::shared_ptr<AgentPeer> peer);
  void Beat(core::SessionId session, agent::v1::AgentHeartbeat heartbeat,
            std::shared_ptr<AgentPeer> peer);
  // The agent's stream has ended.
  void Gone(core::SessionId session);

  const AgentSessions& agents() const { return agents_; }

  // ---- questions; the answers come from what is committed, and wait for nothing

  ChangeTail& changes() { return changes_; }
  std::shared_ptr<const core::ClusterViews> clusters() const { return clusters_.Read(); }
  const UseBoard& uses() const { return uses_; }

  // ---- the engine's own work, for /metrics

  std::vector<Gauge> gauges() const;
  // As of the latest batch.
  Stats::Totals totals() const;

 private:
  template <typename Request, typename Done>
  void Ask(Request request, Done done, Inbox::Lane lane = Inbox::Lane::kRequests);
  void Run();
  void HandleBatch(std::vector<Inbox::Entry> batch);
  void ReportStats();
  absl::Status Refusal() const;
  void ShowCounters();

  const EngineOptions options_;
  CoreLoop loop_;  // core thread
  ChangeTail changes_;
  ClusterBoard clusters_;
  UseBoard uses_;
  ChangeFeed feed_;  // effects thread
  AgentSessions agents_;
  Inbox inbox_;
  Effects effects_;
  Carrier carrier_;
  Committer committer_;

  // core thread
  std::chrono::steady_clock::time_point next_stats_;
  Stats::Totals reported_;

  mutable Mutex shown_mutex_;
  core::Counters shown_ ABSL_GUARDED_BY(shown_mutex_);

  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_ENGINE_H_
