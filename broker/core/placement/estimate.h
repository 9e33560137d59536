// Estimates when a run would start on a cluster, and which of two clusters is the better place.
//
// A cluster has room if its usable nodes have enough beside what Muster's own runs there take, and
// if no run of Muster's that needs no more than the job is queued there. Then the run starts now,
// or after as long as runs that had room waited lately. Otherwise it waits behind those that wait:
// as long as earlier runs of its shape waited for each place in the queue, and not less than the
// scheduler says. Full clusters are compared by what their schedulers say, else by the demand that
// waits and runs there.
//
// A job goes only to a cluster that has room, or that has few runs that wait (Load::PlacesToWait);
// until then it waits in the broker, where it can still go elsewhere. The tasks of an array wait on
// a cluster that takes arrays whole, because what comes later would be another array there.
//
// Room may be kept for one job of each pool (kept_room.h). That job may always go there, and others
// may not if they would be in its way.
//
// These are pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_ESTIMATE_H_
#define MUSTER_BROKER_CORE_PLACEMENT_ESTIMATE_H_

#include <compare>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "broker/core/changes.h"
#include "broker/core/job_line.h"
#include "broker/core/placement/load.h"
#include "broker/core/requirements.h"
#include "muster/v1/facts.pb.h"

namespace muster::core::placement {

// The part of a pool that a job may use, from the cluster's inventory.
struct Capacity {
  const v1::Pool* pool = nullptr;  // null: no pool takes the job
  bool is_full = false;            // the cluster has as many runs as its agent takes
  bool takes_arrays = false;       // it takes the tasks of an array as one thing, like Slurm
  bool knows_nodes = false;        // nothing of the rest is known otherwise
  bool shares_nodes = false;       // all pools of the cluster are names for the same nodes
  uint64_t good_nodes = 0;         // usable ones that have what each node of the job needs
  uint64_t other_gpu_millis = 0;   // the GPUs of other types of these nodes
  Amounts usable;                  // of all usable nodes; GPUs of the job's type only; 0: not known
};

struct Estimate {
  absl::Duration wait;
  // The wait by which clusters are compared. For a full cluster whose scheduler tells none it
  // follows the demand there: `muster-replay` shows that the waits of earlier runs, which had other
  // queues before them, choose worse.
  absl::Duration order;
  bool is_known = false;  // false: there is nothing to tell it by, and `wait` only orders clusters
  bool has_room = false;
  // The cluster may have the job now: it has room, or a place to wait at.
  bool may_go = false;
  uint64_t kept_for = 0;  // the job that the room, or the place to wait, is kept for; 0: none
  bool is_kept = false;   // room is kept for the job itself
  uint32_t places = 0;    // its place among those that wait, from 1; 0: it has room
  // The part of the scarcest resource that would be in use; 1 is all of it, and more is beyond
  // it.
  double used_after = 0;
};

// `capacity` is that of the job on this cluster, `load` the cluster's. `turn`: the job's; without a
// number it is not one that waits.
Estimate MakeEstimate(const Requirements& job, const Turn& turn, const Capacity& capacity,
                      const Load& load, absl::Time now);

// Orders the clusters by preference; the smaller rank is better. Waits that differ by less than a
// quarter are alike, because no estimate is better than that; then the emptier cluster is.
struct Rank {
  int32_t wait_step = 0;
  double used_after = 0;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};
Rank RankOf(const Estimate& estimate);

// The estimate as it is shown; nothing if it is not known.
std::optional<v1::StartEstimate> ToShow(const Estimate& estimate, const Load& load, absl::Time now);

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_ESTIMATE_H_
