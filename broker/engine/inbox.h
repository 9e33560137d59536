// Queues the inputs that wait for the core thread, with a bound, three lanes, many producers and
// one consumer.
//
// The lanes keep a flood of submits from starving agents and cancels: each batch takes from all
// three. A full lane refuses; what the caller does then is the overflow policy of its lane:
//   agents    not refused: each agent has few messages here, because its stream is read no further
//   until they are
//             handled
//   requests  RESOURCE_EXHAUSTED with RetryInfo (cancel, hold, edit)
//   submits   RESOURCE_EXHAUSTED with RetryInfo
#ifndef MUSTER_BROKER_ENGINE_INBOX_H_
#define MUSTER_BROKER_ENGINE_INBOX_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/engine/agent_peer.h"
#include "sync/mutex.h"

namespace muster::broker {

class Inbox {
 public:
  enum class Lane { kAgents, kRequests, kSubmits };
  static constexpr size_t kLanes = 3;

  // The share of one entry in the bounds of its lane.
  struct Cost {
    size_t items = 1;  // jobs, events
    size_t bytes = 0;
  };
  struct Entry {
    core::Input input;
    std::shared_ptr<AgentPeer> peer;  // told once the input is handled; may be null
    Cost cost;
  };

  // Entries that come while the inbox is held wake the consumer once they are as many as this: half
  // a millisecond of work, worth doing beside a commit.
  static constexpr size_t kEagerItems = 128;

  // `bounds` are the most that may wait in each lane. `batch_items` is the most that one Take gets
  // from each lane.
  Inbox(std::array<Cost, kLanes> bounds, size_t batch_items)
      : bounds_(bounds), batch_items_(batch_items) {}

  // False: the lane is full or the inbox is closed. An empty lane takes any entry.
  bool Push(Lane lane, Entry entry);
  // Adds an entry that may wait until the consumer wakes for another reason, or its patience ends.
  bool PushLazily(Lane lane, Entry entry);

  // Waits until there is an entry, the patience has ended or the inbox is closed.
  std::vector<Entry> Take(absl::Duration patience);

  // Makes Take wait, until the release, for kEagerItems or the end of its patience. A commit holds
  // the inbox: entries that come meanwhile could not be answered before its end, and one wake-up
  // for all of them saves many.
  void Hold();
  void Release();

  struct Marks {
    std::array<size_t, kLanes>
        most;          // most items that waited at once in each lane since the last call
    uint64_t refused;  // number of entries that full lanes have refused since the start
  };
  Marks TakeMarks();

  // Returns what waits in a lane, and the number of entries that were refused since the start.
  Cost fill(Lane lane) const;
  uint64_t refused() const;

  // Takes no more entries; Take still returns those that wait.
  void Close();
  // True if the inbox is closed and everything has been taken.
  bool drained() const;
  bool closed() const;

 private:
  struct Queue {
    std::deque<Entry> entries;
    Cost fill{0, 0};
    size_t most_items = 0;  // most items since the last TakeMarks
  };
  bool Add(Lane lane, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the consumer has a reason to wake.
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::array<Cost, kLanes> bounds_;
  const size_t batch_items_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::array<Queue, kLanes> lanes_ ABSL_GUARDED_BY(mutex_);
  size_t items_ ABSL_GUARDED_BY(mutex_) = 0;  // items in all lanes
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool consumer_waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_INBOX_H_
