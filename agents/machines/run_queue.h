// The runs that wait: those of a higher priority first, and the others in the order in which they
// came. Those that are held stand aside, in nobody's way. Pure; owned by one thread.
#ifndef MUSTER_AGENTS_MACHINES_RUN_QUEUE_H_
#define MUSTER_AGENTS_MACHINES_RUN_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agents/machines/allocator.h"

namespace muster::machines {

struct QueuedRun {
  std::string run_key;
  int32_t priority = 0;  // higher starts first
  uint64_t order = 0;    // of arrival, unique
  Request request = {};
  bool cancel_asked = false;  // ends without a start
  bool held = false;          // does not start
};

struct ReadyRun {
  QueuedRun run;
  Allocation allocation;
};

class RunQueue {
 public:
  // A run that is there already is replaced.
  void Push(QueuedRun run);
  // Takes a run out, wherever it stands.
  std::optional<QueuedRun> Remove(std::string_view run_key);
  // Whether the run waits here; then it stands where `held` says.
  bool SetHeld(std::string_view run_key, bool held);
  bool Contains(std::string_view run_key) const {
    return places_.contains(run_key) || held_.contains(run_key);
  }
  // Those that may start.
  size_t size() const { return runs_.size(); }
  size_t held() const { return held_.size(); }

  // The first run with what it needs, which is taken from the allocator; nothing while the first
  // run does not fit. No run overtakes another, so a large one waits for no smaller one behind it.
  std::optional<ReadyRun> PopReady(Allocator* allocator);
  // What the first run waits for and who it is; nothing if no run may start.
  const QueuedRun* Front() const { return runs_.empty() ? nullptr : &runs_.begin()->second; }

 private:
  using Place = std::pair<int64_t, uint64_t>;  // the priority negated, the order
  static Place PlaceOf(const QueuedRun& run) { return {-int64_t{run.priority}, run.order}; }

  std::map<Place, QueuedRun> runs_;
  std::map<std::string, Place, std::less<>> places_;    // by run key
  std::map<std::string, QueuedRun, std::less<>> held_;  // by run key
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_QUEUE_H_
