// The use that Muster's own runs make of a cluster, and what earlier runs there have shown. Each
// run that is placed, begins or ends changes it by O(1); nothing in it grows with the jobs that
// wait.
//
// Values without a clock; kept by the core's thread, copied for readers.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_
#define MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "broker/core/placement/history.h"
#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"

namespace muster::core::placement {

// The amounts that a run takes on all of its nodes together. A job that leaves
// its cores open counts as one core for each node.
struct Amounts {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpu_millis = 0;

  friend bool operator==(const Amounts&, const Amounts&) = default;
};
Amounts DemandOf(const Requirements& job);

// The part that a run has in the use of its cluster.
enum class Phase : uint8_t {
  kNone,   // it is not there, or is held back and takes no turn
  kWaits,  // it is on its way to its start
  kRuns,   // its command runs, or is suspended
};

struct PoolUse {
  Amounts amounts;
  std::map<std::string, uint64_t, std::less<>>
      gpu_millis;  // by type as jobs name it, in small letters
  uint32_t waiting = 0;
  uint32_t running = 0;
  // Waiting runs of which the scheduler says that they wait for resources or for others: there is
  // no room, whatever the inventory says.
  uint32_t queueing = 0;

  friend bool operator==(const PoolUse&, const PoolUse&) = default;
};

class Load {
 public:
  void Add(const Requirements& job, Phase phase);
  void Remove(const Requirements& job, Phase phase);
  // A run begins to queue for room, or does so no longer.
  void CountQueueing(const Requirements& job, bool begins);

  // Adds up the use of the pool; of all pools, if they are names for the same nodes.
  // `gpu_millis` of the result's amounts are those of runs that may have GPUs of this type.
  PoolUse UseOf(const v1::Pool& pool, bool of_all, std::string_view gpu_type) const;

  std::array<Waits, kShapes> waits;
  Errors errors;
  // The scheduler's latest estimate of the start of a run that waits, by shape; InfinitePast: none.
  std::array<absl::Time, kShapes> told = {absl::InfinitePast(), absl::InfinitePast(),
                                          absl::InfinitePast(), absl::InfinitePast()};

  // The use by pool, as jobs name it; "" is the default one. For checks.
  using Pools = std::map<std::string, PoolUse, std::less<>>;
  const Pools& pools() const { return pools_; }

 private:
  // Returns the use of the pool that counts the run.
  Pools::iterator At(const Requirements& job);
  void DropIfUnused(Pools::iterator at);

  // Its size is bounded by the runs that the cluster has. A pool without use is not in it.
  Pools pools_;
};

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_
