// Keeps the facts about each run, for Observe. The scheduler's thread and the agent's threads meet
// here; guarded by a mutex that is held for moments only.
#ifndef MUSTER_AGENTS_MACHINES_RUN_BOARD_H_
#define MUSTER_AGENTS_MACHINES_RUN_BOARD_H_

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"

namespace muster::machines {

// Often enough that the reasons for waiting look fresh; what changes is reported at once.
inline constexpr absl::Duration kFullReportInterval = absl::Seconds(2);

// Why the first in a queue waits: for `what`, "2 cores".
v1::StateReason WaitsFor(const std::string& what);
// Nothing starts before the broker has said what is still wanted.
v1::StateReason AwaitsBroker();

class RunBoard {
 public:
  // News: the agent is woken.
  void Put(const agents::Observation& observation);
  // Said with the next full report only: what the agent knows already, or what may change within
  // milliseconds.
  void PutQuietly(const agents::Observation& observation);
  // News, and as old as its evidence says: what nobody can see now is said once, and not again.
  void PutSilent(const agents::Observation& observation);
  // The run is known, and there is nothing to say about it yet.
  void PutUnseen(const std::string& run_key);
  void Remove(const std::string& run_key);
  bool Contains(const std::string& run_key) const;

  // Names the first run in the queue, and the reasons why it, and the others, wait. Not news by
  // itself. `first_start`: when it starts at the latest; InfiniteFuture: nobody knows.
  void SetReasons(const std::string& first, v1::StateReason first_reason,
                  absl::Time first_start = absl::InfiniteFuture());
  // Nothing waits.
  void ClearReasons() { SetReasons("", {}); }

  // Why this run waits, while it is not in the queue. Not news by itself. A run that is removed has
  // none.
  void SetOwnReason(const std::string& run_key, v1::StateReason reason);
  // It is in the queue, or waits no more.
  void ClearOwnReason(const std::string& run_key);

  // Returns whether the run is held back; news if that is another than before.
  void SetHeld(const std::string& run_key, bool held);

  // The news about these runs since the last call, and every kFullReportInterval all that is known
  // about them. Runs that are not on the board go to `unknown`.
  std::vector<agents::Observation> Report(const std::vector<agents::RunHandle>& runs,
                                          absl::Time now, std::vector<agents::RunHandle>* unknown);

  // There is news of something else than runs.
  void NoteNews();

  void SetWaker(std::function<void()> wake);
  // Tells the agent that there is news, if there is.
  void WakeIfNews();

 private:
  // Returns the reason of a run that waits. The caller holds mutex_.
  v1::StateReason ReasonOfLocked(const std::string& run_key) const;

  struct Entry {
    agents::Observation observation;
    bool news = false;
    bool silent = false;  // nobody can see it now
  };

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> held_;                          // run keys
  std::map<std::string, v1::StateReason> own_reasons_;  // by run key
  std::string first_;
  v1::StateReason first_reason_;
  absl::Time first_start_ = absl::InfiniteFuture();
  absl::Time last_full_ = absl::InfinitePast();
  bool wake_due_ = false;
  std::function<void()> wake_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_BOARD_H_
