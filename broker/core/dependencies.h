// The jobs that wait for the end of other jobs (JobSpec.depends_on). Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_DEPENDENCIES_H_
#define MUSTER_BROKER_CORE_DEPENDENCIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_dependency.pb.h"

namespace muster::core {

// Takes about 100 B for each job that waits, and 40 B for each job that it waits for; nothing for
// other jobs. A chain of any length is judged one job after the other, without recursion.
class Dependencies {
 public:
  // A job whose end is needed.
  struct Need {
    uint64_t job = 0;
    v1::JobOutcome outcome = v1::JOB_OUTCOME_SUCCEEDED;
  };
  // The news for a job that waited.
  struct Verdict {
    uint64_t job = 0;       // the one that waited
    bool is_met = false;    // it waits for no job any more. False: it can never run
    Need need;              // the one that decided it
    v1::JobState end = {};  // of that job
  };

  // The job must not be here. Without needs it does not wait. Several requests of one call may have
  // become one job, so that two needs may name it.
  void Add(uint64_t job, std::vector<Need> needs);
  bool Waits(uint64_t job) const { return waiting_.contains(job); }
  // The job has ended, whether or not it is here: it waits no more, and jobs that wait for it are
  // judged by Next.
  void JobEnded(uint64_t job, v1::JobState end);
  // Judges the next job that waits for one that has ended. A job that can never run stays here
  // until JobEnded is called for it. Nothing: all are judged, or the budget, in needs, is used up.
  std::optional<Verdict> Next(int* budget);

  // True if Next has more to judge.
  bool has_more() const { return !ended_.empty(); }
  size_t size() const { return waiting_.size(); }  // jobs that wait

  // Cross-checks the members. `is_live` tells whether a job has not ended.
  template <typename IsLive>
  absl::Status Check(IsLive is_live) const {
    for (const auto& [job, needs] : waiting_) {
      if (!is_live(job)) return absl::InternalError("a job that has ended waits for others");
      for (const Need& need : needs) {
        if (!is_live(need.job) && !IsBeingJudged(need.job))
          return absl::InternalError("a job waits for one that has ended");
      }
    }
    return CheckEdges();
  }

 private:
  using Edge = std::pair<uint64_t, uint64_t>;  // the job that ends, the job that waits

  void Remove(uint64_t job);
  bool IsBeingJudged(uint64_t job) const;
  absl::Status CheckEdges() const;

  absl::flat_hash_map<uint64_t, std::vector<Need>> waiting_;  // what is left of each one's needs
  absl::btree_set<Edge> edges_;                               // those of the needs in waiting_
  std::deque<std::pair<uint64_t, v1::JobState>> ended_;       // to be judged
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_DEPENDENCIES_H_
