// Holds the policies beside the broker's own: each names the cluster of a job when it arrives.
#ifndef MUSTER_BROKER_REPLAY_CHOOSER_H_
#define MUSTER_BROKER_REPLAY_CHOOSER_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "broker/replay/cluster.h"
#include "broker/replay/fleet.h"
#include "broker/replay/replay.h"

namespace muster::replay {

class Chooser {
 public:
  Chooser(Policy policy, const Fleet& fleet, uint64_t seed)
      : policy_(policy), fleet_(fleet), random_(seed) {}

  // Empty: the broker chooses, or the job fits nowhere. `clusters` are those of the fleet.
  std::string Choose(const TraceJob& job, const std::vector<ReplayCluster>& clusters);

 private:
  const Policy policy_;
  const Fleet& fleet_;
  std::mt19937_64 random_;
};

// Puts all nodes into one cluster.
Fleet AsOneCluster(const Fleet& fleet);

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_CHOOSER_H_
