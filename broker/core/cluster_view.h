// The clusters as those see them who ask and do not decide: immutable, so that a question waits for
// nobody. The core says which have changed; whoever has a view may read it on any thread.
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
#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::core {

struct ClusterView {
  // What its agent last said; shared by the views until the agent says something else. Its
  // positions and times are not kept up to date. Never null.
  std::shared_ptr<const PutCluster> saved;
  bool is_connected = false;
  absl::Time last_heard;
  // What heartbeats say of the scheduler.
  std::optional<absl::Time> scheduler_observed_at;
  std::string scheduler_error;
  std::map<std::string, uint64_t> scheduler_calls;
  uint32_t active = 0;  // runs that have not ended
  uint32_t held = 0;    // those of them whose jobs are held, or asked to be

  const std::string& name() const { return saved->name; }
};

// In the order of their names.
using ClusterViews = std::vector<std::shared_ptr<const ClusterView>>;

// A cluster that is not as it was shown before.
struct ShownCluster {
  std::string name;
  std::shared_ptr<const ClusterView> view;  // null: it is forgotten
};

// Some clusters, by name.
struct ListClusters {
  std::string name = {};   // not empty: this one alone
  std::string after = {};  // those whose names come later
  size_t max_clusters = 1000;
  size_t max_bytes = 2 << 20;  // of them all; the first one is given whatever its size
  // Not null: only those that are connected and could take such a job, without their inventories.
  std::shared_ptr<const v1::JobSpec> that_could_take = nullptr;
};
struct ClustersReply {
  std::vector<v1::Cluster> clusters;  // by name
  // With that_could_take: what keeps the job from those that take it later, by their names. Their
  // inventories have the pool that it waits for, with the issues of theirs; others' are empty.
  std::map<std::string, std::string> not_now;
  bool more = false;  // there are others after these
};
ClustersReply List(const ListClusters& which, const ClusterViews& clusters);
// Nothing: there is no such cluster.
std::optional<v1::Cluster> Find(const std::string& name, const ClusterViews& clusters);
// Unspecified: there is no such cluster.
v1::ClusterKind KindOf(const std::string& name, const ClusterViews& clusters);

// Why no cluster has a job that is QUEUED, is not held and does not wait for a time.
v1::StateReason WhyQueued(const Requirements& job, const ClusterViews& clusters);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_CLUSTER_VIEW_H_
