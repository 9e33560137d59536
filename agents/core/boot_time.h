// A clock for leases, which go on while a machine sleeps.
#ifndef MUSTER_AGENTS_CORE_BOOT_TIME_H_
#define MUSTER_AGENTS_CORE_BOOT_TIME_H_

#include <ctime>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::agents {

// Gives the wall clock as it was when this was made, moved on by a clock that nobody sets and that
// counts the time for which the machine was suspended (CLOCK_BOOTTIME). Any thread. For waits only,
// as SteadyTime.
class BootTime {
 public:
  absl::Time Now() const { return wall_ + (SinceBoot() - since_boot_); }

 private:
  static absl::Duration SinceBoot() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }

  const absl::Time wall_ = absl::Now();
  const absl::Duration since_boot_ = SinceBoot();
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BOOT_TIME_H_
