// The jobs of which clusters have refused runs, and which clusters these are. Owner: the core's
// thread.
#ifndef MUSTER_BROKER_CORE_REFUSED_JOBS_H_
#define MUSTER_BROKER_CORE_REFUSED_JOBS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/core/retry_queue.h"
#include "contract/launch_refusals.h"

namespace muster::core {

// A job is here until it ends. It takes about 250 B with one cluster; kMostRefusals bounds the
// clusters of a job, and the broker's bound on jobs the jobs.
class RefusedJobs {
 public:
  using Clusters = std::vector<contract::RefusingCluster>;

  // Puts them in place of what is known of the job.
  void Put(uint64_t job, Clusters clusters, absl::Time now);
  void Forget(uint64_t job);
  size_t size() const { return jobs_.size(); }
  // Null: none has refused it.
  const Clusters* Find(uint64_t job) const;
  // Returns the number of runs of the job that were refused.
  uint32_t TimesOf(uint64_t job) const;
  // Returns the names of the clusters that the job does not go to now, in their order.
  std::vector<std::string> RuledOut(uint64_t job, absl::Time now) const;
  // Returns a job that may go to one more cluster since the last call; nothing: there is none. Each
  // is returned once for each time that comes.
  std::optional<uint64_t> TakeDue(absl::Time now);
  // Moves all times, for a clock that was set. A broker that starts again counts from the ends of
  // the runs, by the clock of before.
  void Shift(absl::Duration by);

 private:
  void Await(uint64_t job, const Clusters& clusters, absl::Time now);

  absl::flat_hash_map<uint64_t, Clusters> jobs_;
  RetryQueue times_;  // the next time at which one of its clusters is asked again
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_REFUSED_JOBS_H_
