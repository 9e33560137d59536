#include "broker/engine/inbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

bool Inbox::Push(Lane lane, Entry entry) {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    if (!Add(lane, std::move(entry))) return false;
    wake = Ready() && std::exchange(consumer_waits_, false);
  }
  if (wake) changed_.notify_one();
  return true;
}

bool Inbox::PushLazily(Lane lane, Entry entry) {
  const MutexLock lock(mutex_);
  return Add(lane, std::move(entry));
}

Inbox::Cost Inbox::fill(Lane lane) const {
  const MutexLock lock(mutex_);
  return lanes_[static_cast<size_t>(lane)].fill;
}

uint64_t Inbox::refused() const {
  const MutexLock lock(mutex_);
  return refused_;
}

bool Inbox::Add(Lane lane, Entry entry) {
  if (closed_) return false;
  Queue& queue = lanes_[static_cast<size_t>(lane)];
  const Cost& bound = bounds_[static_cast<size_t>(lane)];
  const bool fits = queue.fill.items + entry.cost.items <= bound.items &&
                    queue.fill.bytes + entry.cost.bytes <= bound.bytes;
  if (!fits && !queue.entries.empty()) {
    ++refused_;
    return false;
  }
  items_ += entry.cost.items;
  queue.fill.items += entry.cost.items;
  queue.fill.bytes += entry.cost.bytes;
  queue.most_items = std::max(queue.most_items, queue.fill.items);
  queue.entries.push_back(std::move(entry));
  return true;
}

std::vector<Inbox::Entry> Inbox::Take(absl::Duration patience) {
  std::vector<Entry> batch;
  MutexLock lock(mutex_);
  if (patience > absl::ZeroDuration()) {
    // The patience is bounded, so that the sum does not overflow.
    const auto due = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(std::min(patience, absl::Hours(1)));
    while (!Ready() && !closed_) {
      consumer_waits_ = true;
      if (!lock.WaitUntil(changed_, due)) break;
    }
    consumer_waits_ = false;
  }
  for (Queue& queue : lanes_) {
    size_t items = 0;
    while (!queue.entries.empty() && items < batch_items_) {
      Entry& entry = queue.entries.front();
      items += entry.cost.items;
      items_ -= entry.cost.items;
      queue.fill.items -= entry.cost.items;
      queue.fill.bytes -= entry.cost.bytes;
      batch.push_back(std::move(entry));
      queue.entries.pop_front();
    }
  }
  return batch;
}

void Inbox::Hold() {
  const MutexLock lock(mutex_);
  held_ = true;
}

void Inbox::Release() {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    held_ = false;
    wake = Ready() && std::exchange(consumer_waits_, false);
  }
  if (wake) changed_.notify_one();
}

Inbox::Marks Inbox::TakeMarks() {
  const MutexLock lock(mutex_);
  Marks marks{{}, refused_};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    marks.most[lane] = std::exchange(lanes_[lane].most_items, lanes_[lane].fill.items);
  }
  return marks;
}

void Inbox::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

bool Inbox::drained() const {
  const MutexLock lock(mutex_);
  return closed_ && Empty();
}

bool Inbox::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

bool Inbox::Ready() const { return held_ ? items_ >= kEagerItems : !Empty(); }

bool Inbox::Empty() const {
  for (const Queue& queue : lanes_) {
    if (!queue.entries.empty()) return false;
  }
  return true;
}

}  // namespace muster::broker
