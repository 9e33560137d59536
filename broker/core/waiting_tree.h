// Knows which job is next: the queued jobs stand in a tree, and each level knows its first job.
//
//   clusters that fit     project              user, class         requirements          jobs
//
//   Lane {a, b} ───┬───  "vision" ───┬───  ada, 8 h100 ───┬───  Group: 8 h  ───────  17, 21, 40
//                  │                 │                    └───  Group: 1 h  ───────  18
//                  │                 └───  bob, none  ────────  Group: 1 node  ────  19
//                  └───  "speech" ───────  ada, none  ────────  Group: 1 node  ────  30
//   Lane {b}    ───────  "vision" ───────  ada, none  ────────  Group: pool "large"  12
//
// The groups of a lane compete for the same clusters. There are as many lanes as there are
// different sets of clusters, which are few even when groups are many. A round of placement
// compares the projects of the lanes with room, by their turns (service_turn.h); within a project
// the users' queues stand in the order in which they are served.
//
// A user's queue has the jobs that are alike to quotas and nearly alike to room: of one user, and
// of one class of needs (placement/need.h). One that would exceed a quota is *parked*: its groups
// stay, and it is passed over until something of that quota is free. One whose first job no cluster
// of its lane has room for is *blocked*: it stands in a list of its own until a cluster has room
// for its first job (place.cc). The first of that list is next where a cluster has a place to wait,
// whatever is needed.
//
// Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_WAITING_TREE_H_
#define MUSTER_BROKER_CORE_WAITING_TREE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "broker/core/accounts.h"
#include "broker/core/cluster.h"
#include "broker/core/groups.h"
#include "broker/core/placement/need.h"

namespace muster::core {

// Clusters in the order of their names, then of their indexes.
using ClusterSet = std::vector<Cluster*>;

struct Lane;
struct ProjectQueue;

// Orders the users' queues in a project: priority first, then the user who has used less, then age.
// The smaller one is served first.
struct UserTurn {
  int32_t priority = 0;
  double score = kNoScore;
  uint64_t job = 0;

  friend bool operator==(const UserTurn&, const UserTurn&) = default;
  friend bool operator<(const UserTurn& a, const UserTurn& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.score != b.score) return a.score < b.score;
    return a.job < b.job;
  }
};

// The groups of one user in one project and lane, of one class of needs.
struct UserQueue {
  ProjectQueue* project = nullptr;
  UserAccount* account = nullptr;
  GpuDemand gpus;
  size_t groups = 0;  // all of its groups, waiting or not
  absl::btree_map<Turn, Group*> waiting;
  std::optional<UserTurn> listed;  // its place in its project; nothing: it does not wait
  Account* parked_by = nullptr;    // the account whose quota is reached; null: it may be served
  bool is_blocked = false;         // no cluster of its lane had room when it was looked at
  uint32_t blocked_at = 0;         // its place among the blocked ones of its class
  const placement::RoomNeed* need = nullptr;  // its class; never null

  Group* first_group() const { return waiting.begin()->second; }
  Turn first_turn() const { return waiting.begin()->first; }
};

// The queues of one project in one lane.
struct ProjectQueue {
  Lane* lane = nullptr;
  ProjectAccount* account = nullptr;
  using Key = std::pair<UserIndex, placement::RoomNeed>;
  // The queues that wait, in their order.
  struct List {
    absl::btree_map<UserTurn, UserQueue*> waiting;
    // The entry of the present round of placement that counts, among those that name this list.
    uint64_t entry = 0;

    bool empty() const { return waiting.empty(); }
    // The list must not be empty.
    UserQueue* first_queue() const { return waiting.begin()->second; }
    Group* first_group() const { return first_queue()->first_group(); }
    Turn first_turn() const { return first_queue()->first_turn(); }
  };

  // Each has at least one group, or is about to be dropped. The map's nodes are stable, because
  // groups point to them.
  std::map<Key, UserQueue> queues;
  List open;
  List blocked;

  List& list_of(const UserQueue& queue) { return queue.is_blocked ? blocked : open; }
};

struct Lane {
  ClusterSet fits;
  // Projects by name. The map's nodes are stable, too.
  std::map<std::string, ProjectQueue, std::less<>> projects;
};

inline Lane* Group::lane() const { return queue->project->lane; }

// The pass over blocked queues (unblock.cc).
struct Unblocking {
  std::vector<Cluster*> opened;             // since the pass began
  std::vector<Cluster*> clusters;           // those that the pass is for
  std::optional<placement::RoomNeed> last;  // the last class that it has seen; nothing: no pass
};

class WaitingTree {
 public:
  // The accounts must outlive this object.
  explicit WaitingTree(Accounts* accounts) : accounts_(*accounts) {}

  // Puts the group, with the jobs of its line, into the lane of these clusters; it leaves the lane
  // that it was in.
  void Join(Group* group, ClusterSet fits);
  void Leave(Group* group);
  // Call this when the front of the group's line has changed.
  void Refresh(Group* group);

  // Call these when the scores of one user, or of all, have changed.
  void Relist(const UserAccount& account);
  void RelistAll();
  // Passes the queue over until Unpark of that account.
  void Park(UserQueue* queue, Account* account);
  // Serves those queues of the account again that no quota holds back any more.
  void Unpark(Account* account);
  void UnparkAll();
  // No cluster of its lane has room for the first job of the queue. The queue waits, until it has
  // another first job or Unblock is called.
  void Block(UserQueue* queue);
  void Unblock(UserQueue* queue);
  // The blocked queues by their classes.
  using Blocked = absl::btree_map<placement::RoomNeed, std::vector<UserQueue*>>;
  const Blocked& blocked() const { return blocked_; }

  // Removes lanes, projects and queues without groups. They stay when their last group leaves, so
  // that a round of placement may point to them.
  void DropEmpty();

  template <typename F>
  void ForEachLane(F visit) const {
    for (const auto& [fits, lane] : lanes_) visit(lane.get());
  }

 private:
  void Relist(UserQueue* queue);
  void Drop(UserQueue* queue);

  Accounts& accounts_;
  std::map<ClusterSet, std::unique_ptr<Lane>> lanes_;
  std::vector<UserQueue*> emptied_;  // queues that may have no groups any more
  Blocked blocked_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_WAITING_TREE_H_
