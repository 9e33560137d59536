// Computes when the runs of a cluster that is lost may be given up, so that their jobs start
// elsewhere.
//
//   agent:   sends a heartbeat at s; its answer lets the leases end at s + lease, by its clock
//   broker:  answers that heartbeat at t >= s; its own end is t + lease, and so never earlier
//   node:    stops a run within fence_delay of the end that the agent has told it
//
//   no word from the agent        until t + lease                      nothing happens
//   jobs with FAIL_OVER_NOW       from  t + lease                      are given up
//   with FAIL_OVER_WHEN_FENCED    from  t + lease + fence_delay + LeaseMargin(lease)
//   with WAIT                     never
//
// A heartbeat that is answered moves the end. A broker that has started anew counts from its start,
// since it does not know when its predecessor answered last. Pure; any thread.
#ifndef MUSTER_BROKER_CORE_LEASES_H_
#define MUSTER_BROKER_CORE_LEASES_H_

#include <algorithm>

#include "absl/time/time.h"
#include "broker/core/requirements.h"

namespace muster::core {

// The clocks of a broker, an agent and a node may drift apart by this part of a lease: NTP slews a
// clock by at most 500 ppm, and two of them may go opposite ways.
inline constexpr int64_t kLeaseDriftParts = 1000;
// A margin is never less than what a busy machine takes to stop a run that it has decided to stop.
inline constexpr absl::Duration kLeastLeaseMargin = absl::Seconds(2);
inline absl::Duration LeaseMargin(absl::Duration lease) {
  return kLeastLeaseMargin + lease / kLeaseDriftParts;
}

// The most fail-overs of one job. A job that loses so many clusters most likely breaks them itself.
inline constexpr int kMaxFailOvers = 20;

// Returns the time from which on a run may be given up. `lease_end` is the end by the broker's
// clock, `lease` its length; see Cluster.fence_delay. Infinite future: never.
inline absl::Time GiveUpTime(LossRule rule, absl::Time lease_end, absl::Duration lease,
                             absl::Duration fence_delay) {
  if (rule == LossRule::kNow) return lease_end;
  if (rule == LossRule::kWait || fence_delay <= absl::ZeroDuration()) return absl::InfiniteFuture();
  return lease_end + fence_delay + LeaseMargin(lease);
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_LEASES_H_
