// The room of nodes that a test makes.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_ROOMS_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_ROOMS_H_

#include <memory>
#include <utility>
#include <vector>

#include "agents/kubernetes/cluster/room_book.h"

namespace muster::kubernetes {

inline RoomBook BookOf(const std::vector<NodeObject>& nodes, const std::vector<PodUse>& pods,
                       const KubernetesConfig& config) {
  RoomBook book(config);
  for (const NodeObject& node : nodes) book.MoveNode(nullptr, &node);
  for (const PodUse& pod : pods) book.MovePod(nullptr, &pod);
  return book;
}

inline std::vector<NodeRoom> RoomOf(const std::vector<NodeObject>& nodes,
                                    const std::vector<PodUse>& pods) {
  return BookOf(nodes, pods, KubernetesConfig()).Rooms();
}

// Makes the node another one; what is free stays.
template <typename Change>
void ChangeNode(NodeRoom* room, const Change& change) {
  NodeObject node = *room->node;
  change(&node);
  const NodeRoom changed(std::move(node));
  room->node = changed.node;
  room->all = changed.all;
}

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_ROOMS_H_
