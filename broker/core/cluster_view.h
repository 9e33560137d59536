// Shows the clusters to readers, who ask and do not decide. A view is immutable, so that a question
// waits for nobody. The core says which have changed; any thread may read a view.
#ifndef MUSTER_BROKER_CORE_CLUSTER_VIEW_H_
#define MUSTER_BROKER_CORE_CLUSTER_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/changes.h"
#include "broker/core/job_line.h"
#include "broker/core/placement/estimate.h"
#include "broker/core/placement/load.h"
#include "broker/core/requirements.h"
#include "contract/lacks.h"
#include "contract/place_limits.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::core {

// The time for which two agents of one identity are told of. While both live, they take the
// connection from each other at least every 11 s.
inline constexpr absl::Duration kCloneMemory = absl::Minutes(10);

struct ClusterView {
  // The durable part, which the views share until the agent reports something else. Its positions
  // and times are not kept up to date. Never null.
  std::shared_ptr<const PutCluster> saved;
  bool is_connected = false;
  absl::Time last_heard;
  absl::Time lease_end = absl::InfinitePast();  // as in Cluster
  // The time from which on runs with FAIL_OVER_WHEN_FENCED are given up, see GiveUpTime.
  absl::Time fenced_at = absl::InfiniteFuture();
  // The time of the scheduler's last answer, from heartbeats.
  std::optional<absl::Time> scheduler_observed_at;
  std::string scheduler_error;
  std::map<std::string, uint64_t> scheduler_calls;
  absl::Time cloned_at = absl::InfinitePast();  // as in Cluster
  uint32_t active = 0;                          // runs that have not ended
  uint32_t held = 0;                     // number of these whose jobs are held, or asked to be
  std::optional<absl::Time> full_since;  // as in Cluster
  placement::Load load;                  // likewise

  const std::string& name() const { return saved->name; }
  bool is_full() const { return active >= saved->max_active_runs; }
};
// Estimates the start of such a job there, if it were the next one. `turn` as in MakeEstimate.
placement::Estimate EstimateOn(const ClusterView& cluster, const Requirements& job,
                               const Turn& turn, absl::Time now);

// The clusters in the order of their names.
using ClusterViews = std::vector<std::shared_ptr<const ClusterView>>;

// A cluster that differs from what was shown before.
struct ShownCluster {
  std::string name;
  std::shared_ptr<const ClusterView> view;  // null: it is forgotten
};

// Asks for some clusters, by name.
struct ListClusters {
  std::string name = {};   // not empty: only this cluster
  std::string after = {};  // only clusters whose names come later
  size_t max_clusters = 1000;
  size_t max_bytes = 2 << 20;  // bound on all of them; the first one is given whatever its size
  // Not null: only those that are connected and could take such a job, without their inventories,
  // in the order in which they would be chosen; name, after and max_bytes do not count.
  std::shared_ptr<const v1::JobSpec> that_could_take = nullptr;
  absl::Time now = absl::InfinitePast();  // with that_could_take: the time for its estimates
  // The places that projects may use; null means all.
  std::shared_ptr<const contract::PlaceLimits> limits = nullptr;
};
struct ClustersReply {
  std::vector<v1::Cluster> clusters;  // by name
  // The obstacles that let clusters take the job of that_could_take only later, by cluster name.
  // Their inventories have only the pool that the job waits for, with its issues; the other
  // inventories are empty.
  std::map<std::string, contract::LackCode> not_now;
  // The times when the job of that_could_take would start, by cluster name. Clusters that are not
  // listed have no basis for an estimate, or take no runs.
  std::map<std::string, v1::StartEstimate> estimates;
  bool more = false;  // more clusters follow
};
ClustersReply List(const ListClusters& which, const ClusterViews& clusters);
// Null: there is no such cluster. It lives as long as the views.
const ClusterView* FindView(const std::string& name, const ClusterViews& clusters);
// Returns nothing if there is no such cluster.
std::optional<v1::Cluster> Find(const std::string& name, const ClusterViews& clusters);
// Returns unspecified if there is no such cluster.
v1::ClusterKind KindOf(const std::string& name, const ClusterViews& clusters);

// Says why no cluster has taken a job that is QUEUED, is not held and waits for no time, and when
// it would start on each that could take it, if it were the next one. `turn` as in MakeEstimate.
// `with_runs`: the job with all its runs, of which clusters may have refused some; null: it had
// none.
v1::StateReason WhyQueued(const Requirements& job, const Turn& turn, const ClusterViews& clusters,
                          const contract::PlaceLimits& limits, absl::Time now,
                          const v1::Job* with_runs = nullptr);
// True if some cluster keeps room for the job.
bool IsRoomKept(uint64_t job, const ClusterViews& clusters);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_CLUSTER_VIEW_H_
