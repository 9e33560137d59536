// Estimates how long a run that comes now would wait in a queue. It is a small value, so that it
// can be asked beside the thread that owns the queue. Pure.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_QUEUE_OUTLOOK_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_QUEUE_OUTLOOK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "agents/machines/scheduling/ledger.h"
#include "agents/machines/scheduling/reservation.h"
#include "agents/machines/scheduling/waiting_runs.h"

namespace muster::machines {

// The blocked run that has the reservation.
struct ReservedRun {
  int32_t priority = 0;
  Request request = {};
  absl::Time blocked_since = {};
};

struct QueueOutlook {
  size_t waiting = 0;  // runs that may start; held runs are before nobody
  // The last round has looked at all waiting runs, and nothing has changed since.
  bool is_settled = false;
  std::optional<ReservedRun> reserved = {};  // as that round found it
};

// Returns how long a run that comes now, as the last of its priority, waits at most: zero if a
// round would start it, InfiniteDuration if nobody knows. The queue is that of the outlook.
absl::Duration WaitOf(const QueuedRun& run, const QueueOutlook& outlook, const Ledger& ledger,
                      const Occupants& occupants, absl::Time now);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_QUEUE_OUTLOOK_H_
