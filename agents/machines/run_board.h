// Keeps the facts about each run, for Observe. The scheduler's thread and the agent's threads meet
// here; guarded by a mutex that is held for moments only.
#ifndef MUSTER_AGENTS_MACHINES_RUN_BOARD_H_
#define MUSTER_AGENTS_MACHINES_RUN_BOARD_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "sync/mutex.h"

namespace muster::machines {

// The interval is short enough that the reasons for waiting look fresh; changes are reported at
// once.
inline constexpr absl::Duration kFullReportInterval = absl::Seconds(2);

// Returns the reason of the first run in a queue, which waits for `what`: "2 cores".
v1::StateReason WaitsFor(const std::string& what);
// The reason of runs that start only after the broker has said which ones are still wanted.
v1::StateReason AwaitsBroker();

class RunBoard {
 public:
  // Records an observation and wakes the agent. An end comes once nothing of the run is left,
  // except for processes that could not be killed.
  void Put(const agents::Observation& observation, bool leaves_processes = false);
  // Records an observation for the next full report, without news: the agent knows it already, or
  // it may change within milliseconds.
  void PutQuietly(const agents::Observation& observation);
  // Records an observation of a run that nobody can see now, with the age of its evidence. It is
  // news, and is not repeated in full reports.
  void PutSilent(const agents::Observation& observation);
  // Adds a run about which there is nothing to report yet.
  void PutUnseen(const std::string& run_key);
  void Remove(const std::string& run_key);
  bool Contains(const std::string& run_key) const;
  // Returns what its latest observation proves of the run's processes; nothing if it is not on the
  // board.
  std::optional<agents::FenceOutcome> Fence(const std::string& run_key) const;

  // Sets the first run in the queue and the reason why it waits; the others wait behind it. Not
  // news. `first_start` is the latest time of its start; InfiniteFuture if nobody knows.
  void SetReasons(const std::string& first, v1::StateReason first_reason,
                  absl::Time first_start = absl::InfiniteFuture());
  // Clears the reasons: no run waits in the queue.
  void ClearReasons() { SetReasons("", {}); }

  // Sets the reason of a run that waits outside of the queue. Not news. Remove drops it, too.
  void SetOwnReason(const std::string& run_key, v1::StateReason reason);
  // The run is in the queue now, or waits no more.
  void ClearOwnReason(const std::string& run_key);

  // Sets whether the run is held; news if that has changed.
  void SetHeld(const std::string& run_key, bool held);

  // Returns the news about these runs since the last call, and every kFullReportInterval all that
  // is known about them. Runs that are not on the board go to `unknown`.
  std::vector<agents::Observation> Report(const std::vector<agents::RunHandle>& runs,
                                          absl::Time now, std::vector<agents::RunHandle>* unknown);

  // Notes that there is news of something other than runs.
  void NoteNews();

  void SetWaker(std::function<void()> wake);
  // Wakes the agent if there is news.
  void WakeIfNews();

 private:
  // Returns the reason of a run that waits.
  v1::StateReason ReasonOfLocked(const std::string& run_key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Entry {
    agents::Observation observation;
    bool news = false;
    bool silent = false;  // nobody can see it now
    bool leaves_processes = false;
  };

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> held_ ABSL_GUARDED_BY(mutex_);                          // run keys
  std::map<std::string, v1::StateReason> own_reasons_ ABSL_GUARDED_BY(mutex_);  // by run key
  std::string first_ ABSL_GUARDED_BY(mutex_);
  v1::StateReason first_reason_ ABSL_GUARDED_BY(mutex_);
  absl::Time first_start_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time last_full_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool wake_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_BOARD_H_
