// Who is next: the groups that wait, grouped by the set of clusters that fit them.
//
// Groups in one lane compete for the same clusters, so only the first turn of each lane can be the
// next job to be placed. There are as many lanes as there are different sets of clusters, which are
// few even when groups are many. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_LANES_H_
#define MUSTER_BROKER_CORE_LANES_H_

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "broker/core/cluster.h"
#include "broker/core/groups.h"

namespace muster::core {

// In the order of their names.
using ClusterSet = std::vector<Cluster*>;

struct Lane {
  ClusterSet fits;
  size_t groups = 0;  // in this lane, waiting or not
  std::map<Turn, Group*> waiting;
};

class Lanes {
 public:
  // Puts the group into the lane of these clusters.
  void Join(Group* group, ClusterSet fits);
  void Leave(Group* group);
  // To be called when the group's line has another front than before.
  void Refresh(Group* group);

  template <typename F>
  void ForEach(F visit) const {
    for (const auto& [fits, lane] : lanes_) visit(lane.get());
  }

 private:
  std::map<ClusterSet, std::unique_ptr<Lane>> lanes_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_LANES_H_
