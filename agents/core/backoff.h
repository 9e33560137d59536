// Waiting between attempts: doubling, with jitter, bounded.
#ifndef MUSTER_AGENTS_CORE_BACKOFF_H_
#define MUSTER_AGENTS_CORE_BACKOFF_H_

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace muster::agent {

// Belongs to one thread.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration max)
      : first_(first), max_(max), next_(first), random_(std::random_device{}()) {}

  // How long to wait now: half to all of the next step, so that agents do not come back together.
  absl::Duration Next() {
    const absl::Duration step = next_;
    next_ = std::min(next_ * 2, max_);
    return Jitter(step);
  }
  absl::Duration Jitter(absl::Duration step) {
    return step * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  }
  // After a success: begin again with short steps.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration max_;
  absl::Duration next_;
  std::mt19937_64 random_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_BACKOFF_H_
