// Orders the runs that wait: those of a higher priority first, and the others in the order in which
// they came. Runs that are held stand aside, in nobody's way. Pure; owned by one thread.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_WAITING_RUNS_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_WAITING_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agents/machines/scheduling/request.h"

namespace muster::machines {

struct QueuedRun {
  std::string run_key;
  int32_t priority = 0;  // higher starts first
  uint64_t order = 0;    // of arrival, unique
  Request request = {};
  // From its start to the last moment at which it may still have something.
  absl::Duration time_limit = absl::InfiniteDuration();
  bool held = false;  // does not start
};

// Runs of one kind ask for the same, for as long: where one does not fit, none does. So a round
// looks at one run of each kind, however many wait.
class WaitingRuns {
 public:
  // A run that is there already is replaced.
  void Push(QueuedRun run);
  // Takes a run out, wherever it stands.
  std::optional<QueuedRun> Remove(std::string_view run_key);
  bool Contains(std::string_view run_key) const {
    return places_.contains(run_key) || held_.contains(run_key);
  }
  // Returns the number of runs that may start.
  size_t size() const { return places_.size(); }
  size_t held() const { return held_.size(); }

  // They come in the order of the queue; nothing if none may start.
  const QueuedRun* First() const {
    return fronts_.empty() ? nullptr : &fronts_.begin()->second->second.begin()->second;
  }

  enum class Choice {
    kLeave,  // it stays, and with it the rest of its kind
    kTake,   // it leaves the queue; the next of its kind is shown in its turn
    kStop,   // it stays, and no other is shown
  };
  // Shows the first run of each kind, in the order of the queue. Returns the runs that were taken,
  // in that order.
  std::vector<QueuedRun> Choose(const std::function<Choice(const QueuedRun&)>& choose);

 private:
  using Place = std::pair<int64_t, uint64_t>;  // the priority negated, the order
  using Kind = std::pair<Request, absl::Duration>;
  using Kinds = std::map<Kind, std::map<Place, QueuedRun>>;
  static Place PlaceOf(const QueuedRun& run) { return {-int64_t{run.priority}, run.order}; }

  QueuedRun Extract(Kinds::iterator kind, Place place);

  Kinds kinds_;                              // no kind without a run
  std::map<Place, Kinds::iterator> fronts_;  // of each kind
  std::map<std::string, std::pair<Kinds::iterator, Place>, std::less<>> places_;  // by run key
  std::map<std::string, QueuedRun, std::less<>> held_;                            // by run key
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_WAITING_RUNS_H_
