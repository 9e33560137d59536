// Waiting between attempts: doubling, with jitter, bounded.
#ifndef MUSTER_PROTO_RPC_BACKOFF_H_
#define MUSTER_PROTO_RPC_BACKOFF_H_

#include <random>

#include "absl/time/time.h"

namespace muster::rpc {

// Belongs to one thread.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration max) : first_(first), max_(max), next_(first) {}

  // Returns the wait for now, for a caller that does not sleep here: half to all of the next step,
  // so that many do not come back together.
  absl::Duration Next();
  // Returns half to all of a step that is not one of these.
  absl::Duration Jitter(absl::Duration step);
  // Sleeps for half to all of the next step, or for `at_least` and up to half as much again if that
  // is longer. False, at once, if that would pass the deadline.
  bool Wait(absl::Time deadline, absl::Duration at_least = absl::ZeroDuration());
  // Begins again with short steps, after a success.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration max_;
  absl::Duration next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_BACKOFF_H_
