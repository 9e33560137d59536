// The time of day for a process that must not be led astray when someone sets the clock.
#ifndef MUSTER_AGENTS_CORE_STEADY_TIME_H_
#define MUSTER_AGENTS_CORE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::agent {

// The wall clock as it was when this was made, moved on by a clock that nobody sets
// (CLOCK_MONOTONIC). Any thread.
//
// It is meant for waits. The agent's core has no other time, so it also stamps what the agent
// itself writes: a run's launch_time, observed_at of evidence that a backend left without one, and
// the scheduler's last answer in heartbeats. Until the agent's next start these stamps differ from
// the wall clock by each step of that clock and by the time that the machine was suspended. A
// cluster's own times (start, end, observed_at of a backend) are not touched.
class SteadyTime {
 public:
  absl::Time Now() const {
    return wall_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_);
  }

 private:
  const absl::Time wall_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_ = std::chrono::steady_clock::now();
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_STEADY_TIME_H_
