#include "broker/engine/spec_cache.h"

#include <utility>

namespace muster::broker {

void SpecCache::Put(uint64_t job, Entry entry) {
  const size_t bytes = entry.spec->ByteSizeLong();
  bytes_ += bytes;
  entries_[job] = Slot{std::move(entry), bytes};
  order_.push_back(job);
  while (order_.size() > max_entries_ || bytes_ > max_bytes_) DropOldest();
}

std::optional<SpecCache::Entry> SpecCache::Take(uint64_t job) {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return std::nullopt;
  Entry entry = std::move(found->second.entry);
  bytes_ -= found->second.bytes;
  entries_.erase(found);
  return entry;
}

void SpecCache::DropOldest() {
  const uint64_t oldest = order_.front();
  order_.pop_front();
  Take(oldest);
}

}  // namespace muster::broker
