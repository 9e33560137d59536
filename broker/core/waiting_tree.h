// Knows which job is next: the queued jobs stand in a tree, and each level knows its first job.
//
//   clusters that fit     project              requirements                 jobs
//
//   Lane {a, b} ───┬───  "vision" ───┬───  Group: 1 node, 8 GPUs  ───  17, 21, 40
//                  │                 └───  Group: 4 nodes         ───  18
//                  └───  "speech" ───────  Group: 1 node          ───  30
//   Lane {b}    ───────  "vision" ───────  Group: pool "large"    ───  12
//
// The groups of a lane compete for the same clusters, so that only the first job of each lane can
// be the next one to be placed. There are as many lanes as there are different sets of clusters,
// which are few even when groups are many. Within a lane the project whose first job has the
// smallest turn is served, and within a project the group: the smallest turn of all. Shares and
// quotas will choose at the level of projects.
//
// Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_WAITING_TREE_H_
#define MUSTER_BROKER_CORE_WAITING_TREE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "broker/core/cluster.h"
#include "broker/core/groups.h"

namespace muster::core {

// Clusters in the order of their names, then of their indexes.
using ClusterSet = std::vector<Cluster*>;

struct Lane;

// The groups of one project in one lane.
struct ProjectQueue {
  Lane* lane = nullptr;
  size_t groups = 0;  // all of its groups, waiting or not
  absl::btree_map<Turn, Group*> waiting;
  std::optional<Turn> listed;  // its place in its lane; nothing: none of its groups waits
};

struct Lane {
  ClusterSet fits;
  // Projects by name; each has at least one group. The map's nodes are stable, because groups point
  // to them.
  std::map<std::string, ProjectQueue, std::less<>> projects;
  absl::btree_map<Turn, ProjectQueue*> waiting;

  bool empty() const { return waiting.empty(); }
  // The lane must not be empty.
  Turn first_turn() const { return waiting.begin()->first; }
  Group* first_group() const { return waiting.begin()->second->waiting.begin()->second; }
};

class WaitingTree {
 public:
  // Puts the group, with the jobs of its line, into the lane of these clusters; it leaves the lane
  // that it was in.
  void Join(Group* group, ClusterSet fits);
  void Leave(Group* group);
  // Call this when the front of the group's line has changed.
  void Refresh(Group* group);
  // Removes lanes without groups. Lanes stay when their last group leaves, so that a round of
  // placement may point to them.
  void DropLanesWithoutGroups();

  template <typename F>
  void ForEachLane(F visit) const {
    for (const auto& [fits, lane] : lanes_) visit(lane.get());
  }

 private:
  std::map<ClusterSet, std::unique_ptr<Lane>> lanes_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_WAITING_TREE_H_
