// Gives the time for deadlines and intervals: since some moment, by a clock that nobody sets.
#ifndef MUSTER_AGENTS_HOSTS_STEADY_NOW_H_
#define MUSTER_AGENTS_HOSTS_STEADY_NOW_H_

#include <chrono>

#include "absl/time/time.h"

namespace muster::hosts {

inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_STEADY_NOW_H_
