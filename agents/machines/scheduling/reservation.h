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

// Long enough that a small run which was submitted together with a large one does not wait for it,
// and short beside the runs that a large one usually waits for. Counted from the round that first
// found the run blocked at the head of the queue.
inline constexpr absl::Duration kFreePassing = absl::Minutes(10);

// A run that has its allocation.
struct Occupant {
  std::string run_key;
  Allocation allocation;
};

// Orders runs by the latest time of their end (InfiniteFuture: nobody knows it), then by their
// starts: of the runs without an end, the one that has run longest is first.
struct EndOrder {
  absl::Time end = absl::InfiniteFuture();
  uint64_t start = 0;  // unique

  friend std::weak_ordering operator<=>(const EndOrder&, const EndOrder&) = default;
};
using Occupants = std::map<EndOrder, Occupant>;

// Returns whether a run behind the blocked one may take all that is free now, and not only what the
// reservation leaves. `reserved` is the time of the reservation. `blocked_since`: from when
// kFreePassing counts.
bool MayTakeAnything(absl::Duration time_limit, absl::Time reserved, absl::Time blocked_since,
                     absl::Time now);

class Reservation {
 public:
  // For a request that does not fit into `room` now, but does once all occupants have ended.
  Reservation(const Request& request, const Room& room, const Occupants& occupants, absl::Time now);

  // Returns the latest time at which the run can start, if the occupants keep their limits;
  // InfiniteFuture if it waits for occupants without a limit.
  absl::Time time() const { return time_; }
  // The room that other runs may take forever without delaying the reserved run.
  const Room& beside() const { return beside_; }

  // Call it for each run that starts now. `from_beside`: its allocation comes from beside(), and it
  // may still run at time(). `room`: what is free after its start.
  void OnStart(const Allocation& allocation, bool from_beside, const Room& room);

 private:
  absl::Time time_ = absl::InfiniteFuture();
  Room then_;    // what is free at `time_`, with the reserved run in its place
  Room beside_;  // what is free then and now
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_RESERVATION_H_
