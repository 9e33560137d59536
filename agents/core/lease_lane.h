// The calls that renew the leases of a cluster's runs, on a thread of their own: a slow cluster
// delays nothing else. One call is under way at a time. The newest of the renewals that wait wins,
// and one that failed is repeated until a newer one comes, or its end.
//
// Any thread may call it.
#ifndef MUSTER_AGENTS_CORE_LEASE_LANE_H_
#define MUSTER_AGENTS_CORE_LEASE_LANE_H_

#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/failure_log.h"
#include "sync/mutex.h"

namespace muster::agents {

class LeaseLane {
 public:
  // See Capabilities::renew_leases; null: nothing is ever renewed. `now`: a clock that never jumps.
  using RenewLeases = std::function<absl::Status(absl::Duration remaining)>;
  using Clock = std::function<absl::Time()>;
  LeaseLane(RenewLeases renew, Clock now);
  // Waits for the call that is under way.
  ~LeaseLane();
  LeaseLane(const LeaseLane&) = delete;
  LeaseLane& operator=(const LeaseLane&) = delete;

  // Lets the leases end at `end`, by the clock.
  void Renew(absl::Time end);
  // Returns whether the cluster knows of leases that are not over.
  bool AreLive() const;

 private:
  void Work();

  const RenewLeases renew_;
  const Clock now_;
  FailureLog failures_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::optional<absl::Time> wanted_ ABSL_GUARDED_BY(mutex_);
  absl::Time known_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // to the cluster
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LEASE_LANE_H_
