// The room of a pool that is kept for one job, which has waited long and which others would
// otherwise pass again and again.
//
// Jobs of a higher priority come first in any case. Others may start there only if they
// end before the kept job is expected to start, or leave enough for it. The expected start is
// known as long as the runs in the way have time limits. It is then the latest one, so that runs
// that end in time delay nothing.
//
// Pure values, for any thread.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_KEPT_ROOM_H_
#define MUSTER_BROKER_CORE_PLACEMENT_KEPT_ROOM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/placement/amounts.h"
#include "broker/core/requirements.h"

namespace muster::core::placement {

// A run begins, and its end is known, so much later than it was assigned and was to end, at most,
// as a rule: the way to the agent and back, and the grace of a run that is over its limit.
inline constexpr absl::Duration kLaunchAndEnd = absl::Minutes(1);

struct KeptRoom {
  uint64_t job = 0;
  int32_t priority = 0;
  std::string pool;       // its name in the inventory
  bool is_there = false;  // the job's run waits there, and is part of the use of the pool
  Amounts need;           // of the job
  std::string gpu_type;   // as in RoomNeed
  Amounts usable;         // of the pool, for such a job
  // The time at which the job has room at the latest; InfiniteFuture: not known.
  absl::Time start = absl::InfiniteFuture();
  Amounts spare;  // the part of `usable` that is left then, with the job there

  friend bool operator==(const KeptRoom&, const KeptRoom&) = default;
};

// The end of a run that is in the way, and what it takes of `usable`.
struct EndOfRun {
  absl::Time at;  // at the latest; InfiniteFuture: not known
  Amounts amounts;
};
// Fills in `start` and `spare`.
void ExpectStart(std::vector<EndOfRun> runs, absl::Time now, KeptRoom* kept);

// The part of a job's demand that the kept job could have in its place.
Amounts DemandBeside(const KeptRoom& kept, const Requirements& job);
bool EndsInTime(const KeptRoom& kept, const Requirements& job, absl::Time now);
// True if such a job may start there now. `taken`: the part of `usable` that is in use.
bool LeavesRoom(const KeptRoom& kept, const Requirements& job, Amounts taken, absl::Time now);

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_KEPT_ROOM_H_
