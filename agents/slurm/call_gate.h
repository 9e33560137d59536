// Lets the agent's calls to Slurm through, no more of them in a minute than are allowed, and counts
// them. Calls that somebody waits for (submissions, cancels, holds) have no limit unless the
// cluster's operator sets one.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_SLURM_CALL_GATE_H_
#define MUSTER_AGENTS_SLURM_CALL_GATE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/slurm/call_queue.h"
#include "muster/v1/facts.pb.h"
#include "sync/mutex.h"

namespace muster::slurm {

class CallGate {
 public:
  // Calls in a minute; 0 means no limit.
  struct Limits {
    uint32_t polls = 0;  // calls of the kinds kObserve and kOther
    uint32_t calls = 0;  // of all kinds
  };

  // A submission waits at most so long for its turn.
  explicit CallGate(const Limits& limits, absl::Duration submit_patience = absl::Minutes(5));

  // Waits until the call may be made, and counts it. UNAVAILABLE: it may not, for longer than is
  // waited; it is not to be made then. HadNoTurn tells that error from all others.
  absl::Status Enter(const std::string& name, CallKind kind);
  static bool HadNoTurn(const absl::Status& status);
  // Handles the answer to a call: the words besides the answer itself.
  void OnAnswer(std::string_view words);

  // The least time between two looks at the queue, given what would do. `is_awaited`: see
  // CallQueue.
  absl::Duration ObserveInterval(absl::Duration wanted, bool is_awaited = false);
  // Returns the issues for the cluster's operator.
  std::vector<v1::ClusterIssue> Issues() const;
  // Returns the numbers of calls since the start, by name.
  std::map<std::string, uint64_t> Calls() const;

 private:
  struct Limit {
    std::string_view setting;  // of the agent's configuration
    uint32_t per_minute;
    CallQueue queue{per_minute};
    uint64_t given_up = 0;  // calls without a turn
  };

  absl::Duration BoundOf(CallKind kind) const;
  // Waits for a turn, with mutex_ held. False: there was no turn before the deadline.
  bool Await(Limit* limit, CallKind kind, absl::Time since, MutexLock* lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration submit_patience_;
  const agents::SteadyTime time_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  // Times are those of time_.
  Limit polls_ ABSL_GUARDED_BY(mutex_);
  Limit calls_of_all_kinds_ ABSL_GUARDED_BY(mutex_);
  BackOff back_off_ ABSL_GUARDED_BY(mutex_);
  const Limit* given_up_at_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the last one without a turn
  absl::Time last_given_up_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The times of day until which the issues of either are told.
  absl::Time held_back_until_ ABSL_GUARDED_BY(mutex_);
  absl::Time given_up_until_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CALL_GATE_H_
