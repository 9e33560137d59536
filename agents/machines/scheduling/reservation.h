// When the first blocked run can start, and what the runs behind it may have meanwhile. Pure.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_RESERVATION_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_RESERVATION_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agents/machines/scheduling/request.h"
#include "agents/machines/scheduling/room.h"

namespace muster::machines {

// Long enough that what was submitted together with a large run, and fits, is not kept waiting by
// it; short beside the runs that a large one usually waits for. Counted from the round that first
// found the run blocked at the head of the queue.
inline constexpr absl::Duration kFreePassing = absl::Minutes(10);

// A run that has its allocation.
struct Occupant {
  std::string run_key;
  Allocation allocation;
};

// By the time at which they end at the latest (InfiniteFuture: nobody knows), then in the order of
// their starts: so those that run longest are first among those without an end.
struct EndOrder {
  absl::Time end = absl::InfiniteFuture();
  uint64_t start = 0;  // unique

  friend std::weak_ordering operator<=>(const EndOrder&, const EndOrder&) = default;
};
using Occupants = std::map<EndOrder, Occupant>;

// How long a request that comes now waits at the most, if nobody else does: zero if it fits, and
// InfiniteDuration if nobody knows, or if it never fits. `could_fit`: once all occupants have
// ended.
absl::Duration LongestWait(const Request& request, bool could_fit, const Room& room,
                           const Occupants& occupants, absl::Time now);

// Returns whether a run behind the blocked one may have all that is free now, and not only what is
// beside the reservation. `reserved`: its time. `blocked_since`: as kFreePassing is counted.
bool MayTakeAnything(absl::Duration time_limit, absl::Time reserved, absl::Time blocked_since,
                     absl::Time now);

class Reservation {
 public:
  // For a request that `room` has no place for now, but would have once all occupants have ended.
  Reservation(const Request& request, const Room& room, const Occupants& occupants, absl::Time now);

  // The run can start then at the latest, if occupants keep their limits; InfiniteFuture: some that
  // it waits for have none.
  absl::Time time() const { return time_; }
  // Room that a run may have for ever, while the reserved one can start at `time` all the same.
  const Room& beside() const { return beside_; }

  // To be said of each run that starts now. `from_beside`: it has its allocation from beside(), and
  // may be there at `time`. `room`: what is free after it.
  void OnStart(const Allocation& allocation, bool from_beside, const Room& room);

 private:
  absl::Time time_ = absl::InfiniteFuture();
  Room then_;    // what is free at `time_`, with the reserved run in its place
  Room beside_;  // what is free then and now
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_RESERVATION_H_
