// Blocking calls that each take many of what waits: a few threads, each of which takes all that
// waits, up to what one call takes.
//
// Add and Start: the agent's core thread. The queue is bounded by whoever adds: the agent core
// never has two calls for one run.
#ifndef MUSTER_AGENTS_CORE_BATCH_LANE_H_
#define MUSTER_AGENTS_CORE_BATCH_LANE_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "agents/core/worker_lane.h"
#include "sync/mutex.h"

namespace muster::agents {

template <typename Item>
class BatchLane {
 public:
  // `call` is made from the threads, with at most `max_batch` items, in the order of their arrival.
  using Call = std::function<void(std::vector<Item>)>;
  // Returns whether `next` goes along with those before it, the first of which is given, and their
  // number. Null: all do.
  using Together = std::function<bool(const Item& first, const Item& next, size_t before)>;
  BatchLane(int threads, size_t max_batch, Call call, Together together = nullptr)
      : max_batch_(std::max<size_t>(1, max_batch)),
        call_(std::move(call)),
        together_(std::move(together)),
        lane_(threads) {}

  void Add(Item item) {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(item));
    ++added_;
  }
  // Begins with what has been added.
  void Start() {
    // A turn that nothing is left for costs little.
    const size_t each = together_ == nullptr ? max_batch_ : 1;
    for (; added_ > 0; added_ -= std::min(added_, each)) {
      lane_.Post([this] {
        std::vector<Item> taken = Take();
        // Nothing is left if another thread, or an earlier turn of this one, took them along.
        if (!taken.empty()) call_(std::move(taken));
      });
    }
  }

 private:
  std::vector<Item> Take() {
    const MutexLock lock(mutex_);
    const size_t most = std::min(waiting_.size(), max_batch_);
    size_t count = std::min<size_t>(most, 1);
    while (count < most &&
           (together_ == nullptr || together_(waiting_.front(), waiting_[count], count))) {
      ++count;
    }
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(count);
    std::vector<Item> taken(std::make_move_iterator(waiting_.begin()),
                            std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return taken;
  }

  const size_t max_batch_;
  const Call call_;
  const Together together_;
  size_t added_ = 0;  // since Start; the core thread's

  Mutex mutex_;
  std::deque<Item> waiting_ ABSL_GUARDED_BY(mutex_);

  WorkerLane lane_;  // last: it uses all the others
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BATCH_LANE_H_
