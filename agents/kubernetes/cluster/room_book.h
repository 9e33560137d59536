// Keeps the room of each node as news of nodes and pods come. A look at a cluster costs as much as
// it has nodes, however many pods there are. Pure; owned by whoever has its lock.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_ROOM_BOOK_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_ROOM_BOOK_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/kubernetes/cluster/capacity.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "agents/kubernetes/settings/kubernetes_config.h"

namespace muster::kubernetes {

class RoomBook {
 public:
  // The configuration must outlive this object.
  explicit RoomBook(const KubernetesConfig& config) : config_(config) {}

  // A node, or a pod, that was `before` is `now`. Null: it is not there.
  void MoveNode(const NodeObject* before, const NodeObject* now);
  void MovePod(const PodUse* before, const PodUse* now);

  // All nodes' room, by name. Pods on no node, or on a node that is not there, do not count.
  const std::vector<NodeRoom>& Rooms();
  // Returns GpuLabelsOf all nodes.
  const std::set<std::string>& GpuLabels();
  // Returns the pods of the run that have not ended.
  PodsThere PodsOf(const std::string& run_key) const;

 private:
  struct Use {
    Amounts all;
    Amounts of_others;  // than Muster
  };
  void Count(const PodUse& pod, bool comes);
  void Refresh(NodeRoom* room) const;
  void Settle();

  const KubernetesConfig& config_;
  std::map<std::string, NodeRoom> empty_;            // nodes without pods, by name
  std::unordered_map<std::string, Use> uses_;        // by node; none without pods
  std::unordered_map<std::string, PodsThere> runs_;  // by run key; none without pods
  bool has_other_nodes_ = true;                      // rooms_ is of others
  std::vector<NodeRoom> rooms_;
  std::set<std::string> gpu_labels_;
  std::unordered_map<std::string, size_t> places_;  // in rooms_, by node
  std::set<std::string> touched_;                   // nodes whose pods have changed since
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_ROOM_BOOK_H_
