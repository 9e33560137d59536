#include "agents/kubernetes/cluster/room_book.h"

#include <cstdint>

namespace muster::kubernetes {

void RoomBook::MoveNode(const NodeObject* before, const NodeObject* now) {
  if (before != nullptr) empty_.erase(before->name);
  if (now != nullptr) empty_.insert_or_assign(now->name, NodeRoom(*now));
  has_other_nodes_ = true;
}

void RoomBook::MovePod(const PodUse* before, const PodUse* now) {
  if (before != nullptr) Count(*before, /*comes=*/false);
  if (now != nullptr) Count(*now, /*comes=*/true);
}

void RoomBook::Count(const PodUse& pod, bool comes) {
  const int64_t one = comes ? 1 : -1;
  if (!pod.run_key.empty()) {
    PodsThere& there = runs_[pod.run_key];
    there.made += one;
    if (!pod.node.empty()) there.placed += one;
    if (there.made == 0) runs_.erase(pod.run_key);
  }
  if (pod.node.empty()) return;
  Use& use = uses_[pod.node];
  const auto add = [&](Amounts* to) { comes ? * to += pod.requests : * to -= pod.requests; };
  add(&use.all);
  if (!pod.is_own) add(&use.of_others);
  if (use.all == Amounts()) uses_.erase(pod.node);
  touched_.insert(pod.node);
}

void RoomBook::Refresh(NodeRoom* room) const {
  room->free = room->for_runs = room->node->allocatable;
  const auto use = uses_.find(room->node->name);
  if (use == uses_.end()) return;
  room->free -= use->second.all;
  room->for_runs -= use->second.of_others;
}

void RoomBook::Settle() {
  if (has_other_nodes_) {
    rooms_.clear();
    places_.clear();
    for (const auto& [name, room] : empty_) {
      places_[name] = rooms_.size();
      Refresh(&rooms_.emplace_back(room));
    }
    gpu_labels_ = GpuLabelsOf(rooms_, config_);
  } else {
    for (const std::string& name : touched_) {
      if (const auto place = places_.find(name); place != places_.end())
        Refresh(&rooms_[place->second]);
    }
  }
  has_other_nodes_ = false;
  touched_.clear();
}

const std::vector<NodeRoom>& RoomBook::Rooms() {
  Settle();
  return rooms_;
}

const std::set<std::string>& RoomBook::GpuLabels() {
  Settle();
  return gpu_labels_;
}

PodsThere RoomBook::PodsOf(const std::string& run_key) const {
  const auto found = runs_.find(run_key);
  return found == runs_.end() ? PodsThere() : found->second;
}

}  // namespace muster::kubernetes
