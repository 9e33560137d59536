// The runs that wait, in the order in which they came. Pure; owned by one thread.
#ifndef MUSTER_AGENTS_MACHINES_FIFO_QUEUE_H_
#define MUSTER_AGENTS_MACHINES_FIFO_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agents/machines/allocator.h"

namespace muster::machines {

struct QueuedRun {
  std::string run_key;
  uint64_t order = 0;  // of arrival, unique
  Request request = {};
};

struct ReadyRun {
  QueuedRun run;
  Allocation allocation;
};

class FifoQueue {
 public:
  // A run that is there already is replaced.
  void Push(QueuedRun run);
  // Takes a run out, wherever it stands.
  std::optional<QueuedRun> Remove(std::string_view run_key);
  bool Contains(std::string_view run_key) const { return orders_.contains(run_key); }
  size_t size() const { return runs_.size(); }

  // The first run with what it needs, which is taken from the allocator; nothing while the first
  // run does not fit. No run overtakes another, so a large one never starves.
  std::optional<ReadyRun> PopReady(Allocator* allocator);
  // What the first run waits for and who it is; nothing if the queue is empty.
  const QueuedRun* Front() const { return runs_.empty() ? nullptr : &runs_.begin()->second; }

 private:
  std::map<uint64_t, QueuedRun> runs_;                   // by order
  std::map<std::string, uint64_t, std::less<>> orders_;  // by run key
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FIFO_QUEUE_H_
