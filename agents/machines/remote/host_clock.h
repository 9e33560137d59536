// The lead of a host's clock over the agent's, as far as it can be proved. Pure.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_CLOCK_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_CLOCK_H_

#include "absl/time/time.h"
#include "agents/machines/host_report.h"

namespace muster::machines {

class HostClock {
 public:
  // The report was made between these two times of the agent's clock.
  void Hear(const HostReport& report, absl::Time asked, absl::Time answered);
  // Its times, as the agent's clock would have had them.
  void Correct(HostReport* report) const;
  // Is negative if it is behind. Zero as long as the way to the host explains all differences.
  absl::Duration ahead() const { return ahead_; }

 private:
  absl::Duration ahead_ = absl::ZeroDuration();
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_CLOCK_H_
