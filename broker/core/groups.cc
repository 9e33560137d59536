#include "broker/core/groups.h"

#include <utility>

namespace muster::core {

Group* Groups::Find(const Requirements& requirements, UserIndex user) const {
  const auto it = index_.find(Key{requirements, user});
  return it == index_.end() ? nullptr : *it;
}

Group* Groups::Add(Requirements requirements, UserIndex user) {
  auto group = std::make_unique<Group>();
  group->requirements = std::move(requirements);
  group->user = user;
  Group* raw = group.get();
  if (free_.empty()) {
    raw->id = static_cast<uint32_t>(by_id_.size());
    by_id_.push_back(std::move(group));
  } else {
    raw->id = free_.back();
    free_.pop_back();
    by_id_[raw->id] = std::move(group);
  }
  index_.insert(raw);
  return raw;
}

void Groups::Remove(Group* group) {
  index_.erase(group);
  free_.push_back(group->id);
  by_id_[group->id].reset();
}

}  // namespace muster::core
