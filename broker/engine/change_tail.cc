#include "broker/engine/change_tail.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

ChangeTail::ChangeTail(Options options, uint64_t last, Clock clock)
    : options_(options), clock_(std::move(clock)), complete_after_(last), last_(last) {}

bool ChangeTail::IsWanted() const {
  const MutexLock lock(mutex_);
  if (watchers_ > 0) return true;
  return was_watched_ && clock_() - unwatched_since_ < options_.keep_unwatched;
}

void ChangeTail::Append(std::vector<TailEntry> entries, uint64_t last) {
  const MutexLock lock(mutex_);
  for (TailEntry& entry : entries) {
    bytes_ += BytesOf(entry);
    entries_.push_back(std::move(entry));
  }
  last_ = std::max(last_, last);
  Evict();
}

void ChangeTail::Skip(uint64_t last) {
  const MutexLock lock(mutex_);
  last_ = std::max(last_, last);
  complete_after_ = last_;
  entries_.clear();
  bytes_ = 0;
}

void ChangeTail::Evict() {
  while (!entries_.empty() &&
         (entries_.size() > options_.max_entries || bytes_ > options_.max_bytes)) {
    complete_after_ = entries_.front().sequence;
    bytes_ -= BytesOf(entries_.front());
    entries_.pop_front();
  }
}

// The change before it counts for another entry, now or in the past.
size_t ChangeTail::BytesOf(const TailEntry& entry) const {
  constexpr size_t kOverhead = sizeof(TailEntry) + 2 * sizeof(std::string);
  return entry.change->size() + kOverhead;
}

void ChangeTail::Join() {
  const MutexLock lock(mutex_);
  ++watchers_;
  was_watched_ = true;
}

void ChangeTail::Leave() {
  const MutexLock lock(mutex_);
  if (--watchers_ == 0) unwatched_since_ = clock_();
}

uint64_t ChangeTail::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

ChangeTail::Read ChangeTail::ReadAfter(uint64_t sequence, size_t max_entries, size_t max_bytes,
                                       const std::function<bool(const TailEntry&)>& wants) const {
  const MutexLock lock(mutex_);
  Read read;
  read.up_to = std::max(sequence, last_);
  if (sequence >= last_) return read;
  read.is_behind = sequence < complete_after_;
  if (read.is_behind) return read;
  auto entry = std::upper_bound(
      entries_.begin(), entries_.end(), sequence,
      [](uint64_t after, const TailEntry& later) { return after < later.sequence; });
  size_t bytes = 0;
  for (size_t looked_at = 0; entry != entries_.end(); ++entry, ++looked_at) {
    const bool is_wanted = wants(*entry);
    const bool fits = !is_wanted || bytes == 0 || bytes + entry->change->size() <= max_bytes;
    if (looked_at == max_entries || !fits) {
      read.up_to = std::prev(entry)->sequence;
      read.has_more = true;
      return read;
    }
    if (!is_wanted) continue;
    bytes += entry->change->size();
    read.entries.push_back(*entry);
  }
  return read;
}

size_t ChangeTail::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace muster::broker
