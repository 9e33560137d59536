// Queues the runs that have ended and whose usage is still to be asked for: accounting lags behind
// the ends of runs.
//
// Owner: the agent's core thread. Pure: the time comes in.
#ifndef MUSTER_AGENTS_CORE_USAGE_QUEUE_H_
#define MUSTER_AGENTS_CORE_USAGE_QUEUE_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace muster::agents {

// The first question follows a run's end after this: slurmdbd has the usage after about a second,
// and runs that end meanwhile go along.
inline constexpr absl::Duration kUsageLag = absl::Seconds(3);
// The least time between two questions, whatever they are about: a fifth of the looks at Slurm that
// are allowed by default. If nothing is known about a run, it waits so long, then twice as long.
inline constexpr absl::Duration kUsageInterval = absl::Seconds(15);
// Nobody asks any more this long after a run's end, as slurmdbd restarts in less.
inline constexpr absl::Duration kUsagePatience = absl::Minutes(10);
// Runs that wait; what ends beyond them is not asked about. The journal keeps each of them longer.
inline constexpr size_t kMaxAwaitedUsages = 5000;

class UsageQueue {
 public:
  // The run has ended.
  void Add(const std::string& run_key, absl::Time now);
  void Erase(const std::string& run_key);
  bool Contains(const std::string& run_key) const { return waits_.contains(run_key); }
  size_t size() const { return waits_.size(); }

  // Returns the runs to ask about now, at most kMaxUsageBatch; none while an answer is awaited.
  std::vector<std::string> TakeDue(absl::Time now);
  // The answer has come: those of the question that are still here are asked about later. Returns
  // the runs whose time is over, which are here no more. `pause`: until the next question, at
  // least.
  std::vector<std::string> Answered(absl::Time now, absl::Duration pause = kUsageInterval);
  // Gives all up.
  std::vector<std::string> TakeAll();

 private:
  struct Wait {
    absl::Time until;  // then it is given up
    absl::Time due;
    absl::Duration pause;
  };

  std::map<std::string, Wait> waits_;
  std::set<std::pair<absl::Time, std::string>> due_;  // of the runs that are not being asked about
  std::vector<std::string> asked_;                    // the question under way
  bool is_asking_ = false;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_USAGE_QUEUE_H_
