// Keeps the latest changes of jobs, for watchers to read at their own pace. A change is kept as the
// bytes of its message, made once and shared by all who send it.
//
// Any thread may use it. The effects thread appends; a watcher that has fallen behind the tail
// reads the store.
#ifndef MUSTER_BROKER_ENGINE_CHANGE_TAIL_H_
#define MUSTER_BROKER_ENGINE_CHANGE_TAIL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sync/mutex.h"

namespace muster::broker {

// Holds a v1::WatchJobsResponse with one change.
using ChangeBytes = std::shared_ptr<const std::string>;

struct TailEntry {
  uint64_t sequence = 0;
  uint64_t job = 0;
  bool has_ended = false;  // this change ends the job
  ChangeBytes change;
  ChangeBytes before;  // the job's previous change; null: the job is new
};

class ChangeTail {
 public:
  struct Options {
    // A busy broker makes so many changes in some ten seconds; a watcher that is further behind has
    // time to read the store.
    size_t max_entries = 65'536;
    size_t max_bytes = size_t{64} << 20;
    // Changes are kept for this time while nobody watches: a client that lost its connection comes
    // back sooner.
    std::chrono::seconds keep_unwatched{60};
  };
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // `last` is the sequence of the latest change before this process.
  ChangeTail(Options options, uint64_t last, Clock clock = &std::chrono::steady_clock::now);

  // ---- the effects thread

  // True if somebody watches, or did so a moment ago. Otherwise changes need not be shown.
  bool IsWanted() const;
  // Adds changes in the order of their sequences. No others up to `last` will come.
  void Append(std::vector<TailEntry> entries, uint64_t last);
  // Drops all entries: only the store has the changes up to `last`.
  void Skip(uint64_t last);

  // ---- watchers

  // A watcher begins or ends.
  void Join();
  void Leave();

  // All changes up to this sequence are in the store or here.
  uint64_t last() const;

  struct Read {
    bool is_behind = false;  // only the store has the changes that follow
    std::vector<TailEntry> entries;
    uint64_t up_to = 0;     // `entries` has all wanted changes up to this sequence
    bool has_more = false;  // more changes follow
  };
  // Looks through up to `max_entries` changes after a sequence for those that are wanted, and takes
  // up to `max_bytes` of them, or a single larger one.
  Read ReadAfter(uint64_t sequence, size_t max_entries, size_t max_bytes,
                 const std::function<bool(const TailEntry&)>& wants) const;

  size_t bytes() const;

 private:
  size_t BytesOf(const TailEntry& entry) const;
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Clock clock_;

  mutable Mutex mutex_;
  std::deque<TailEntry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t complete_after_ ABSL_GUARDED_BY(mutex_);  // all changes after this sequence are here
  uint64_t last_ ABSL_GUARDED_BY(mutex_);
  size_t watchers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point unwatched_since_ ABSL_GUARDED_BY(mutex_);
  bool was_watched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CHANGE_TAIL_H_
