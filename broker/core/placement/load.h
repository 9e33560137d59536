// The use that Muster's own runs make of a cluster, and what earlier runs there have shown. Each
// run that is placed, begins or ends changes it by O(1); nothing in it grows with the jobs that
// wait.
//
// Values without a clock; kept by the core's thread, copied for readers.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_
#define MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/placement/amounts.h"
#include "broker/core/placement/history.h"
#include "broker/core/placement/kept_room.h"
#include "broker/core/placement/need.h"
#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"

namespace muster::core::placement {

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
  // Only a sum has these: the parts of runs that name another type, and of runs that name
  // none.
  uint64_t other_gpu_millis = 0;
  uint64_t untyped_gpu_millis = 0;
  uint32_t waiting = 0;
  uint32_t running = 0;
  // Waiting runs, by what they need, that wait for resources or for others, as the scheduler says:
  // there is no room for such needs, whatever the inventory says.
  uint32_t queueing = 0;
  std::map<RoomNeed, uint32_t> queueing_needs;

  friend bool operator==(const PoolUse&, const PoolUse&) = default;
};

// News of a cluster usually reaches the broker, and a run the cluster, within this time: agents on
// Slurm look every few seconds.
inline constexpr absl::Duration kRoundTrip = absl::Seconds(20);

// Counts the starts of the last round trip.
class RecentStarts {
 public:
  void Add(absl::Time now);
  uint32_t Count(absl::Time now) const;

 private:
  absl::Time began_ = absl::InfinitePast();  // of the interval that counts now
  uint32_t now_ = 0;
  uint32_t before_ = 0;  // of the interval before it
};

class Load {
 public:
  void Add(const Requirements& job, Phase phase);
  void Remove(const Requirements& job, Phase phase);
  // A run begins to queue for room, or does so no longer.
  void CountQueueing(const Requirements& job, bool begins);

  // Adds up the use of the pool; of all pools, if they are names for the same nodes. Without the
  // needs of runs that queue.
  // `gpu_millis` of the result's amounts are those of runs that may have GPUs of this type.
  PoolUse UseOf(const v1::Pool& pool, bool of_all, std::string_view gpu_type) const;
  // Calls `visit` with the needs of the runs that queue there, and the number of runs that have
  // each.
  template <typename F>
  void ForEachQueueing(const v1::Pool& pool, bool of_all, F visit) const {
    for (const auto& [name, use] : pools_) {
      if (!Counts(name, pool, of_all)) continue;
      for (const auto& [need, runs] : use.queueing_needs) visit(need, runs);
    }
  }

  // Returns the number of runs that may wait in a pool there: as many as it is given, or as many as
  // started there in a round trip. Those that wait start while the broker learns of ends, so that
  // no node idles meanwhile.
  uint32_t PlacesToWait(absl::Time now) const {
    return std::max(places_to_wait, starts.Count(now));
  }
  // True if some pool of that many may have fewer runs that wait.
  bool HasPlaceToWait(int pools, absl::Time now) const;

  // True if such a run takes room of the pool; of any, if they are names for the same nodes.
  static bool CountsIn(const Requirements& job, const v1::Pool& pool, bool of_all);
  // Returns the room that is kept in the pool; in any, if they are names for the same nodes. Null:
  // none.
  const KeptRoom* KeptIn(const v1::Pool& pool, bool of_all) const;

  // One for each pool at most; the core sets it.
  std::vector<KeptRoom> kept;
  std::array<Waits, kShapes> waits;
  RecentStarts starts;
  // At least this many runs may wait in a pool; the core sets it by the kind of the cluster.
  uint32_t places_to_wait = 0;
  Errors errors;
  // The scheduler's latest estimate of the start of a waiting run, by shape; InfinitePast if none.
  std::array<absl::Time, kShapes> told = {absl::InfinitePast(), absl::InfinitePast(),
                                          absl::InfinitePast(), absl::InfinitePast()};

  // Holds the use by pool, as jobs name it; "" is the default one. For checks.
  using Pools = std::map<std::string, PoolUse, std::less<>>;
  const Pools& pools() const { return pools_; }

 private:
  // True if runs that name this pool take room of the other one.
  static bool Counts(std::string_view name, const v1::Pool& pool, bool of_all) {
    return of_all || name == pool.name() || (name.empty() && pool.is_default());
  }
  // Returns the use of the pool that counts the run.
  Pools::iterator At(const Requirements& job);
  void DropIfUnused(Pools::iterator at);

  // Its size is bounded by the runs that the cluster has. A pool without use is not in it.
  Pools pools_;
};

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_LOAD_H_
