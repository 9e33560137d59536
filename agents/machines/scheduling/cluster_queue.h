// Decides which run starts next on a cluster of hosts, and where. Keeps the waiting runs and the
// allocations of the running ones; rounds turn the first into the second. Pure: time comes in.
// Owned by one thread.
//
// Order: a higher priority first, then first come, first served. The first run that does not fit is
// blocked, and gets a reservation; the runs behind it may start before it (backfill) as long as
// that does not make it wait longer:
// - The time of the reservation is known from the time limits of the running runs: a run may pass
//   if it ends by then, or takes only what the blocked run does not need.
// - The time is not known, because the blocked run waits for a run without a time limit: a run with
//   a limit may pass, because it ends some day. A run without one may take what the blocked run
//   does not need, and during the first kFreePassing of the block also what it needs. So queues
//   without any limits use idle resources, and yet no run is passed forever.
// A run that needs hosts which are not up stands aside until they are.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_CLUSTER_QUEUE_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_CLUSTER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agents/machines/scheduling/ledger.h"
#include "agents/machines/scheduling/queue_outlook.h"
#include "agents/machines/scheduling/reservation.h"
#include "agents/machines/scheduling/waiting_runs.h"

namespace muster::machines {

// One round looks at this many hosts for runs behind the blocked one, counted for each kind of run,
// which keeps a round below 20 ms. Kinds of runs beyond that get their look in later rounds.
inline constexpr size_t kMaxBackfillLooks = 500'000;

struct ReadyRun {
  QueuedRun run;
  Allocation allocation;
};

// The run at the head of the queue that cannot start.
struct BlockedRun {
  QueuedRun run;
  // The latest start; InfiniteFuture if unknown.
  absl::Time start = absl::InfiniteFuture();
};

class ClusterQueue {
 public:
  explicit ClusterQueue(std::vector<ClusterHost> hosts) : ledger_(std::move(hosts)) {}

  const Ledger& ledger() const { return ledger_; }
  void SetState(uint32_t host, HostState state) {
    is_settled_ = false;
    ledger_.SetState(host, state);
  }

  // Starts with these hosts, and nothing on them. Runs that wait go on waiting.
  void StartOver(std::vector<ClusterHost> hosts);

  // Adds a run that waits, or replaces it if it is there.
  void Push(QueuedRun run) {
    is_settled_ = false;
    waiting_.Push(std::move(run));
  }
  std::optional<QueuedRun> Remove(std::string_view run_key);
  // Returns false if the run does not wait here.
  bool SetHeld(std::string_view run_key, bool held);
  // Returns the first run that may start, in the order of the queue; null if none.
  const QueuedRun* First() const { return waiting_.First(); }
  size_t waiting() const { return waiting_.size(); }  // and may start
  size_t held() const { return waiting_.held(); }

  // Returns the runs that start now. They keep their allocations until Release.
  std::vector<ReadyRun> Round(absl::Time now);
  // The blocked run of the last round; nothing if it left no run waiting.
  const std::optional<BlockedRun>& blocked() const { return blocked_; }

  // With the ledger and the occupants, it tells how long a new run would wait (WaitOf).
  QueueOutlook outlook() const {
    return {.waiting = waiting(), .is_settled = is_settled_, .reserved = reserved_};
  }

  // Returns the runs that have their allocations.
  const Occupants& occupants() const { return occupants_; }

  // Adds a run that has been running since before a restart. `end` is the latest time of its end.
  void Restore(const std::string& run_key, const Allocation& allocation, absl::Time end);
  // Frees the run's allocation. Nothing happens if it has nothing.
  void Release(std::string_view run_key);

 private:
  struct RoundState;
  WaitingRuns::Choice Consider(const QueuedRun& run, RoundState* round);
  std::optional<Allocation> FindPlace(const QueuedRun& run, RoundState* round, bool* from_beside);
  void Block(const QueuedRun& run, RoundState* round);

  Ledger ledger_;
  WaitingRuns waiting_;
  Occupants occupants_;
  std::map<std::string, EndOrder, std::less<>> running_;  // by run key
  uint64_t next_start_ = 1;
  std::optional<BlockedRun> blocked_;
  std::optional<ReservedRun> reserved_;
  bool is_settled_ = false;  // see QueueOutlook
  // The time when a waiting run was first found blocked, by run key.
  std::map<std::string, absl::Time, std::less<>> blocked_since_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_CLUSTER_QUEUE_H_
