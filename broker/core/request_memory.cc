#include "broker/core/request_memory.h"

namespace muster::core {

RequestMemory::RequestMemory() : entries_(1), index_(0, Hash{&entries_}, Equal{&entries_}) {}

const RequestMemory::Entry* RequestMemory::Find(const RequestKey& key) const {
  auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[*it];
}

RequestMemory::Slot RequestMemory::Add(const Entry& entry) {
  Slot slot;
  if (free_.empty()) {
    slot = static_cast<Slot>(entries_.size());
    entries_.push_back(entry);
  } else {
    slot = free_.back();
    free_.pop_back();
    entries_[slot] = entry;
  }
  index_.insert(slot);
  return slot;
}

void RequestMemory::JobEnded(Slot slot, absl::Time end) {
  ended_.push_back({absl::ToUnixMicros(end), slot});
}

void RequestMemory::Expire(absl::Time cutoff, size_t limit) {
  const int64_t cutoff_micros = absl::ToUnixMicros(cutoff);
  while (limit-- > 0 && !ended_.empty() && ended_.front().unix_micros < cutoff_micros) {
    index_.erase(ended_.front().slot);
    free_.push_back(ended_.front().slot);
    ended_.pop_front();
  }
}

}  // namespace muster::core
