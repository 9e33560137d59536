// Provides a clock for waits, which must not go wrong when somebody sets the time of day.
#ifndef MUSTER_AGENTS_CORE_STEADY_TIME_H_
#define MUSTER_AGENTS_CORE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/hosts/steady_now.h"

namespace muster::agents {

// Returns the time since some moment that nobody moves, the same one for the whole process
// (CLOCK_MONOTONIC). Any thread. It is for waits only, and is visibly far from the time of day.
inline absl::Time SteadyNow() { return absl::UnixEpoch() + hosts::SteadyNow(); }

// Gives the wall clock as it was when this was made, moved on by a clock that nobody sets
// (CLOCK_MONOTONIC). Any thread.
//
// It is for waits only: it differs from the time of day by each step of that and by the time for
// which the machine was suspended. Times that are written down or compared with the times of others
// come from absl::Now().
class SteadyTime {
 public:
  absl::Time Now() const {
    return wall_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_);
  }

 private:
  const absl::Time wall_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_ = std::chrono::steady_clock::now();
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_STEADY_TIME_H_
