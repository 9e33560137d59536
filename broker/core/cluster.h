// A cluster as the core sees it: what its agent last said, and the runs it was given.
#ifndef MUSTER_BROKER_CORE_CLUSTER_H_
#define MUSTER_BROKER_CORE_CLUSTER_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/core/changes.h"
#include "broker/core/cluster_view.h"
#include "broker/core/core.h"
#include "broker/core/placement/load.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

struct RunId {
  uint64_t job = 0;
  uint32_t number = 0;

  friend auto operator<=>(const RunId&, const RunId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const RunId& id) {
    return H::combine(std::move(h), id.job, id.number);
  }
};

// Names a cluster for the life of the process; 0 if none.
using ClusterIndex = uint16_t;

// A message carries at most so many run keys, assignments or events; the protocol says so.
inline constexpr size_t kMaxPerMessage = 1000;
// Each costs an inventory in memory.
inline constexpr size_t kMaxClusters = 10'000;
// The most clusters, including those that are being forgotten. ClusterIndex ends at 65,535.
inline constexpr size_t kMaxClustersWithLeaving = 2 * kMaxClusters;

struct Cluster {
  ClusterIndex index = 0;
  // The durable part, as it was put last or will be put with the next change.
  PutCluster saved;
  // The version of Refits at which its inventory changed last.
  uint64_t changed_at = 0;

  std::optional<SessionId> session;  // session of the connected agent
  absl::Time last_heard = absl::InfinitePast();
  // The leases of its runs end at this time if its agent is not heard before; see leases.h.
  absl::Time lease_end = absl::InfinitePast();
  // All that its silence allows has been done: with NOW, and with WHEN_FENCED.
  bool has_given_up_now = false;
  bool has_given_up_fenced = false;
  // The time of the scheduler's last answer, from heartbeats.
  std::optional<absl::Time> scheduler_observed_at;
  std::string scheduler_error;
  std::map<std::string, uint64_t> scheduler_calls;

  // Runs that have not ended, and ended ones whose logs are not complete.
  absl::btree_map<RunId, std::unique_ptr<v1::Run>> runs;
  // The agent's process, the one before it, and the time when that one came back. They tell two
  // agents with copies of one state directory. A process that has ended never does.
  std::optional<uint64_t> process;
  std::optional<uint64_t> former_process;
  absl::Time cloned_at = absl::InfinitePast();  // InfinitePast: they are not two
  uint32_t active = 0;                          // number of `runs` that have not ended
  uint32_t held = 0;  // number of the active ones whose jobs are held, or asked to be
  // The time when it became full; nothing if it is not full. InfinitePast: it was full already when
  // the broker started.
  std::optional<absl::Time> full_since;
  // The use that its active runs make of it, and what earlier runs there have shown. The version
  // rises with each run that comes, begins or goes.
  placement::Load load;
  uint64_t load_version = 0;
  // Numbers of runs that run there and whose jobs are preemptible, by priority.
  std::map<int32_t, uint32_t> preemptible;
  // Others than Muster decide there which run is next: Slurm, and Kueue.
  bool has_own_queue = false;
  // The version of the load that the expected starts in load.kept are right for, and since when.
  uint64_t kept_version = 0;
  absl::Time kept_at = absl::InfinitePast();
  // Something may have made room or a place to wait here since the last round of placement.
  bool has_opened = false;
  // The active runs that have not started and that this process has placed, each with its place
  // among those that waited there; see placement::Waits.
  absl::flat_hash_map<RunId, uint32_t> places;
  // The run of which Load::told is, by shape; meaningless where that is InfinitePast.
  std::array<RunId, placement::kShapes> told_by = {};
  // The runs that the connected agent does not hold and has not been sent yet.
  std::deque<RunId> to_resend;

  // The view that was shown last; null if none. If `shows_saved`, it is up to date with what the
  // agent says of itself. If the cluster does not wait to be shown, it is up to date in everything.
  std::shared_ptr<const ClusterView> shown;
  bool shows_saved = false;
  bool waits_to_be_shown = false;

  const std::string& name() const { return saved.name; }
  bool is_full() const { return active >= saved.max_active_runs; }
  bool TakesRuns() const { return session.has_value() && !is_full() && !saved.cordon; }
  // Must be called when it is shown, after a round of placement: a run that takes the place of
  // another one in the same round leaves the cluster as full as it was.
  void NoteWhetherFull(absl::Time now) {
    if (!is_full()) {
      full_since.reset();
    } else if (!full_since) {
      full_since = now;
    }
  }
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_CLUSTER_H_
