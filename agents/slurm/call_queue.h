// Orders the calls to Slurm: a token bucket, and the calls that wait for its tokens.
//
// Pure: the time comes in. Not thread-safe; CallGate is.
#ifndef MUSTER_AGENTS_SLURM_CALL_QUEUE_H_
#define MUSTER_AGENTS_SLURM_CALL_QUEUE_H_

#include <cstdint>
#include <list>
#include <string_view>

#include "absl/time/time.h"

namespace muster::slurm {

// The most urgent come first.
enum class CallKind {
  kEnd,  // cancel, hold, release: somebody waits for it, and nodes may be wasted
  kSubmit,
  kObserve,  // the queue
  kOther,    // history, partitions, settings
};

class CallQueue {
 public:
  // `per_minute` is the most calls in any 60 s. After a quiet minute a quarter of them may come at
  // once, and the others one by one. 0: no limit.
  explicit CallQueue(uint32_t per_minute);

  using Ticket = uint64_t;
  // `since` says from when on it waits.
  Ticket Join(CallKind kind, absl::Time since);
  // Returns whether it is this one's turn and there is a token; then both are gone from here.
  bool MayGo(Ticket ticket, absl::Time now);
  // It no longer waits.
  void Leave(Ticket ticket);
  // A call that had its turn is not made after all.
  void GiveBack();
  // Returns the time to ask again, if nobody joins or leaves: in the future.
  absl::Time NextChange(absl::Time now);

  // Returns the time between two looks at the queue that leaves calls for everything else: zero
  // while the bucket is full, up to a minute when it is empty. `is_awaited`: somebody waits for the
  // look, so that it comes as soon as there are calls for it and for its consequences.
  absl::Duration ObserveInterval(absl::Time now, bool is_awaited = false);

 private:
  struct Waiting {
    Ticket ticket;
    CallKind kind;
    absl::Time since;
  };
  void Refill(absl::Time now);
  const Waiting* Next(absl::Time now) const;

  const uint32_t per_minute_;
  const uint32_t burst_;   // the most tokens that there can be
  const uint32_t refill_;  // tokens in a minute
  double tokens_;
  bool was_end_ = false;  // whether the last turn was that of a kEnd
  absl::Time refilled_ = absl::InfinitePast();
  Ticket last_ticket_ = 0;
  std::list<Waiting> waiting_;  // in the order in which they came
};

// Widens the interval between two looks at the queue if slurmctld's own limit (rl_enable) asks for
// it. Not thread-safe.
class BackOff {
 public:
  // Returns whether these words of a command or an answer say that slurmctld holds its callers
  // back.
  static bool Says(std::string_view words);
  // Takes the outcome of each call.
  void OnAnswer(bool held_back, absl::Time now);

  // 1, or more while slurmctld holds calls back.
  int factor() const { return factor_; }
  uint64_t count() const { return count_; }
  absl::Time last() const { return last_; }

 private:
  int factor_ = 1;
  uint64_t count_ = 0;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CALL_QUEUE_H_
