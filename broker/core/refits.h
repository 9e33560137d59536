// Which groups have to be held against which clusters again, because inventories have changed.
//
// An inventory change costs O(1) beside the number of clusters: it raises the version. A pass then
// goes over all groups, a bounded slice in each round of placement, and brings each up to date with
// every cluster that has changed since the group was looked at last. Until a pass has been at a
// group, its lane may be wrong: placement looks at the group again before it assigns one of its
// jobs to such a cluster, so that no job goes where it does not fit; that it fits a cluster newly
// is found a little later.
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
  // Whether the cluster has changed since the group was looked at.
  static bool IsStale(const Group& group, const Cluster& cluster) {
    return cluster.changed_at > group.fitted_at;
  }
  // Those that are, the latest change first.
  template <typename F>
  void ForEachStale(const Group& group, F visit) const {
    for (auto it = changed_.rbegin(); it != changed_.rend() && IsStale(group, **it); ++it) {
      visit(*it);
    }
  }

  // Whether all groups are up to date.
  bool is_done() const { return changed_.empty(); }
  // The id of the next group to look at; nothing: the pass has seen all of them, which are
  // `end_id`, and the next one begins unless all is done. To be called while it is not.
  std::optional<uint32_t> Next(size_t end_id);

 private:
  uint64_t version_ = 0;
  std::vector<Cluster*> changed_;  // since the present pass began or before, the latest one last
  uint64_t pass_version_ = 0;      // when the present pass began
  uint32_t next_ = 0;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_REFITS_H_
