// Measures the GPUs that are free although a job that waits could have used them: on whichever
// cluster, not only on the one whose queue has the job.
#ifndef MUSTER_BROKER_REPLAY_IDLE_METER_H_
#define MUSTER_BROKER_REPLAY_IDLE_METER_H_

#include <cstddef>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "broker/replay/cluster.h"
#include "broker/replay/trace.h"

namespace muster::replay {

class IdleMeter {
 public:
  // Call it when nothing more happens until `until`; `waiting` are the jobs that have not started.
  void Count(absl::Duration now, absl::Duration until, const std::set<size_t>& waiting,
             const Trace& trace, const std::vector<ReplayCluster>& clusters);
  double gpu_seconds() const { return gpu_seconds_; }

 private:
  double gpu_seconds_ = 0;
};

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_IDLE_METER_H_
