// Tells where runs have their results, and what the status.json of those that run says so far.
//
// Owner: the thread that observes. The readings are on a thread of their own, so that a file server
// that hangs keeps no state from being told.
#ifndef MUSTER_AGENTS_CORE_RESULTS_WATCH_H_
#define MUSTER_AGENTS_CORE_RESULTS_WATCH_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/output_host.h"
#include "agents/core/status_reader.h"
#include "agents/core/steady_time.h"
#include "sync/mutex.h"

namespace muster::agents {

// Two readings of a run's status.json are this far apart: people look at it now and then, and each
// reading is a search on the file server.
inline constexpr absl::Duration kProgressInterval = absl::Seconds(10);

// A search that takes longer is repeated less often, in proportion: large directories keep neither
// the file server busy nor the other runs waiting. A twentieth of the interval.
inline constexpr absl::Duration kQuickReading = absl::Milliseconds(500);

class ResultsWatch {
 public:
  using Post = std::function<void(std::function<void()>)>;
  // The backend outlives it. `post` has a task done, one after the other, on another thread; what
  // it still has when this object ends must not be done.
  ResultsWatch(Backend* backend, Post post, absl::Duration interval = kProgressInterval);

  // Completes the observations of runs that have begun with what is known by now, and asks for
  // what is due. `runs`: all that are observed.
  void Complete(const std::vector<RunHandle>& runs, ObserveOutcome* outcome);

 private:
  struct Known {
    std::string directory;
    bool is_reading = false;
    absl::Time next_reading = absl::InfinitePast();  // by time_
    std::optional<v1::Progress> progress;
  };
  void Forget(const std::vector<RunHandle>& runs);
  void ForgetProgress(const std::string& run_key);
  Known* Add(const RunHandle& run);
  void Ask(const RunHandle& run, std::optional<absl::Time> start_time, Known* known);
  void Read(const RunHandle& run, std::optional<absl::Time> start_time);

  Backend& backend_;
  const bool judges_ends_;
  const Post post_;
  const absl::Duration interval_;
  const SteadyTime time_;
  OutputHost output_host_;
  StatusReader status_;
  mutable Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);  // by run key
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RESULTS_WATCH_H_
