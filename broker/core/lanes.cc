#include "broker/core/lanes.h"

namespace muster::core {

void Lanes::Join(Group* group, ClusterSet fits) {
  if (group->lane != nullptr) {
    if (group->lane->fits == fits) return;
    Leave(group);
  }
  std::unique_ptr<Lane>& lane = lanes_[fits];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->fits = std::move(fits);
  }
  ++lane->groups;
  group->lane = lane.get();
  Refresh(group);
}

void Lanes::Leave(Group* group) {
  Lane* lane = group->lane;
  if (group->listed) lane->waiting.erase(*group->listed);
  group->listed.reset();
  group->lane = nullptr;
  if (--lane->groups == 0) {
    const ClusterSet key = lane->fits;
    lanes_.erase(key);
  }
}

void Lanes::Refresh(Group* group) {
  std::optional<Turn> front;
  if (!group->line.empty()) front = group->line.front();
  if (front == group->listed) return;
  if (group->listed) group->lane->waiting.erase(*group->listed);
  if (front) group->lane->waiting.emplace(*front, group);
  group->listed = front;
}

}  // namespace muster::core
