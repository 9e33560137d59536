// Looks at the runs on the cluster at intervals, on a thread of its own, and has the files of those
// that have ended, and the progress of those that run, read on others. A look that does not end is
// noticed.
//
// Owner: the agent's core thread. Observations come back by `post`, from the other threads.
#ifndef MUSTER_AGENTS_CORE_OBSERVER_H_
#define MUSTER_AGENTS_CORE_OBSERVER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/agent_core.h"
#include "agents/core/backend.h"
#include "agents/core/end_reader.h"
#include "agents/core/inbox.h"
#include "agents/core/results_watch.h"
#include "agents/core/worker_lane.h"

namespace muster::agents {

class Observer {
 public:
  // A look that takes longer than `patience` hangs. The backend outlives this object.
  Observer(Backend* backend, absl::Duration patience, std::function<void(Message)> post);

  // The next look is due at once.
  void Want() { is_wanted_ = true; }
  // Returns the time of the next look; infinite future if one is under way.
  absl::Time next() const;
  // Begins a look if one is due. `runs` is asked for those to look at; none: there is no look.
  void LookIfDue(absl::Time now, const std::function<std::vector<RunHandle>()>& runs);
  // The look under way has ended: ObserveDone has come.
  void Ended(absl::Time now);
  // Returns the reason that the cluster counts as silent: the look under way hangs. Empty: it does
  // not hang, or that was told.
  std::string TakeHang(absl::Time now);
  // Returns the reason that the files of ended runs cannot be read: the reading hangs. Empty: it
  // does not hang any more. Nothing: that was told.
  std::optional<std::string> TakeEndsHang();
  // Says that something else has shown that the cluster answers, so that a hang is told once more.
  void TellHangAgain() { is_hang_told_ = false; }

 private:
  void ReadEnds(std::vector<EndReader::End> ends, absl::Time began);

  Backend& backend_;
  const absl::Duration patience_;
  const std::function<void(Message)> post_;
  bool is_wanted_ = false;
  absl::Time next_ = absl::InfinitePast();
  bool is_looking_ = false;
  absl::Time began_ = absl::InfinitePast();  // while is_looking_
  bool is_hang_told_ = false;                // likewise
  bool is_ends_hang_told_ = false;

  EndReader end_reader_;  // the lanes'
  ResultsWatch results_;  // likewise
  WorkerLane results_lane_;
  WorkerLane ends_;
  WorkerLane looks_;  // last: it posts to the others
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_OBSERVER_H_
