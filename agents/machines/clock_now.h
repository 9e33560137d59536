// The time of day and time that only goes on. Uses nothing but the standard library: the supervisor
// links it.
#ifndef MUSTER_AGENTS_MACHINES_CLOCK_NOW_H_
#define MUSTER_AGENTS_MACHINES_CLOCK_NOW_H_

#include <time.h>

#include <cstdint>

namespace muster::machines {

// Returns the time since 1970.
inline int64_t NowMicroseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

// Returns the time since some moment that nobody moves; for waits.
inline int64_t SteadyMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Adds the time for which the machine was suspended.
inline int64_t MillisecondsSinceBoot() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CLOCK_NOW_H_
