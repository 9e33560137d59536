// Sets the time of day of a test's program. Include it in one file of each: it takes the place of a
// function of the C library's.
#ifndef MUSTER_TESTS_UNIT_HOSTS_SET_CLOCK_H_
#define MUSTER_TESTS_UNIT_HOSTS_SET_CLOCK_H_

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/hosts/steady_now.h"
#include "gtest/gtest.h"

namespace muster::hosts {

// The seconds by which the time of day has been set forward.
inline std::atomic<int64_t> clock_step{0};

}  // namespace muster::hosts

// One file of a program includes it: the C library's name cannot be inline.
// NOLINTNEXTLINE(misc-definitions-in-headers)
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += muster::hosts::clock_step;
  return result;
}

namespace muster::hosts {

// Sets the clock by so many seconds, and waits until absl::Now() has noticed: it counts the
// processor's cycles, and looks at the clock every two seconds only.
inline void SetClock(int64_t step) {
  const auto is_noticed = [] {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return absl::AbsDuration(absl::Now() - absl::TimeFromTimespec(now)) < absl::Minutes(1);
  };
  clock_step = step;
  const absl::Duration deadline = SteadyNow() + absl::Minutes(1);
  while (!is_noticed() && SteadyNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(is_noticed());
}

}  // namespace muster::hosts

#endif  // MUSTER_TESTS_UNIT_HOSTS_SET_CLOCK_H_
