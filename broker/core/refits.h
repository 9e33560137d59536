// Knows which groups must be checked again against which clusters, because inventories have
// changed.
//
// An inventory change costs O(1) beside the number of clusters: it raises the version. A pass then
// goes over all groups, a bounded slice in each round of placement, and brings each up to date with
// every cluster that has changed since the group was last looked at. Until the pass reaches a
// group, its lane may be wrong. Placement therefore looks at the group again before it assigns one
// of its jobs to a changed cluster, so that no job goes where it does not fit. A new fit may be
// found a little later.
//
// Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_REFITS_H_
#define MUSTER_BROKER_CORE_REFITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "broker/core/cluster.h"
#include "broker/core/groups.h"

namespace muster::core {

class Refits {
 public:
  void ClusterChanged(Cluster* cluster);

  // A group with this version is up to date.
  uint64_t version() const { return version_; }
  // True if the cluster has changed since the group was looked at.
  static bool IsStale(const Group& group, const Cluster& cluster) {
    return cluster.changed_at > group.fitted_at;
  }
  // Calls `visit` with the clusters that are stale for the group, the latest change first.
  template <typename F>
  void ForEachStale(const Group& group, F visit) const {
    for (auto it = changed_.rbegin(); it != changed_.rend() && IsStale(group, **it); ++it) {
      visit(*it);
    }
  }

  // True if all groups have been looked at since the cluster changed.
  bool AllHaveSeen(const Cluster& cluster) const {
    return is_done() || cluster.changed_at < changed_.front()->changed_at;
  }
  // True if all groups are up to date.
  bool is_done() const { return changed_.empty(); }
  // Returns the id of the next group to look at. Nothing: the pass has seen all groups, which end
  // before `end_id`, and the next pass begins unless all is done. Call it only while it is not.
  std::optional<uint32_t> Next(size_t end_id);

 private:
  uint64_t version_ = 0;
  std::vector<Cluster*> changed_;  // since this pass or an earlier one began, the latest last
  uint64_t pass_version_ = 0;      // version at which the present pass began
  uint32_t next_ = 0;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_REFITS_H_
