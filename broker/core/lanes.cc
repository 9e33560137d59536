#include "broker/core/lanes.h"

namespace muster::core {

void Lanes::Join(Shape* shape, ClusterSet fits) {
  if (shape->lane != nullptr) {
    if (shape->lane->fits == fits) return;
    Leave(shape);
  }
  std::unique_ptr<Lane>& lane = lanes_[fits];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->fits = std::move(fits);
  }
  ++lane->shapes;
  shape->lane = lane.get();
  Refresh(shape);
}

void Lanes::Leave(Shape* shape) {
  Lane* lane = shape->lane;
  if (shape->listed) lane->waiting.erase(*shape->listed);
  shape->listed.reset();
  shape->lane = nullptr;
  if (--lane->shapes == 0) {
    const ClusterSet key = lane->fits;
    lanes_.erase(key);
  }
}

void Lanes::Refresh(Shape* shape) {
  std::optional<Turn> front;
  if (!shape->queue.empty()) front = shape->queue.front();
  if (front == shape->listed) return;
  if (shape->listed) shape->lane->waiting.erase(*shape->listed);
  if (front) shape->lane->waiting.emplace(*front, shape);
  shape->listed = front;
}

}  // namespace muster::core
