#include "agents/machines/remote/host_clock.h"

#include <algorithm>

namespace muster::machines {

void HostClock::Hear(const HostReport& report, absl::Time asked, absl::Time answered) {
  const absl::Time there = absl::FromUnixMicros(report.time_us);
  // The time of day here may have been set back meanwhile.
  const absl::Duration least = there - std::max(asked, answered);
  ahead_ = std::clamp(ahead_, least, std::max(least, there - asked));
}

void HostClock::Correct(HostReport* report) const {
  const int64_t ahead_us = absl::ToInt64Microseconds(ahead_);
  for (RankReport& rank : report->runs) {
    if (rank.started.has_value()) rank.started->time_us -= ahead_us;
    if (!rank.exit.has_value()) continue;
    rank.exit->end_us -= ahead_us;
    // 0: there is none.
    if (rank.exit->start_us != 0) rank.exit->start_us -= ahead_us;
  }
}

}  // namespace muster::machines
