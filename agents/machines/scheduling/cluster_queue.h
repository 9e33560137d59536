// Decides which run starts next on a cluster of hosts, and where: the waiting runs, the allocations
// of the running ones, and the rounds that bring the one to the other. Pure: time comes in. Owned
// by one thread.
//
// Order: a higher priority first, then first come, first served. The first run that does not fit is
// blocked, and gets a reservation; the runs behind it may start before it (backfill) as long as
// that does not make it wait longer:
// - The time of the reservation is known from the time limits of what runs: a run may pass if it
//   ends by then, or takes what the blocked run does not need.
// - It is not known, because something that the blocked run waits for has no time limit: a run with
// a
//   limit may pass, for it will be gone. One without may take what the blocked run does not need,
//   and during the first kFreePassing that the run is blocked also what it does need; so queues
//   without any limits use what is idle, and yet nobody is passed for ever.
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

// Hosts that one round looks at for runs behind the blocked one, counting all hosts for each kind
// of run: keeps a round below 20 ms. Kinds behind those start when some before them have.
inline constexpr size_t kMaxBackfillLooks = 500'000;

struct ReadyRun {
  QueuedRun run;
  Allocation allocation;
};

// The run at the head of the queue that cannot start.
struct BlockedRun {
  QueuedRun run;
  // At the latest; InfiniteFuture: unknown.
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

  // Starts with these hosts and no runs. Runs that waited and come again have been blocked as long.
  void StartOver(std::vector<ClusterHost> hosts);

  // Runs that wait. A run that is there already is replaced.
  void Push(QueuedRun run) {
    is_settled_ = false;
    waiting_.Push(std::move(run));
  }
  std::optional<QueuedRun> Remove(std::string_view run_key);
  // Returns whether the run waits here; then it stands where `held` says.
  bool SetHeld(std::string_view run_key, bool held);
  // In the order of the queue; nothing if none may start.
  const QueuedRun* First() const { return waiting_.First(); }
  size_t waiting() const { return waiting_.size(); }  // and may start
  size_t held() const { return waiting_.held(); }

  // The runs that start now, which have what they need from here on, until Release.
  std::vector<ReadyRun> Round(absl::Time now);
  // The blocked run of the last round; nothing if it left no run waiting.
  const std::optional<BlockedRun>& blocked() const { return blocked_; }

  // For a run that comes now, beside the ledger and the occupants.
  QueueOutlook outlook() const {
    return {.waiting = waiting(), .is_settled = is_settled_, .reserved = reserved_};
  }

  // The runs that have their allocations.
  const Occupants& occupants() const { return occupants_; }

  // A run that has been running since before a restart. `end`: at the latest.
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
  bool is_settled_ = false;  // as the outlook has it
  // When each waiting run was first found blocked, by run key; of runs that were so.
  std::map<std::string, absl::Time, std::less<>> blocked_since_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_CLUSTER_QUEUE_H_
