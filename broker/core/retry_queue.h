// The jobs that wait for the time of their next run. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_RETRY_QUEUE_H_
#define MUSTER_BROKER_CORE_RETRY_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"

namespace muster::core {

// Times are microseconds since 1970. Takes about 50 B for each job. No job is here twice, so that
// the bound on the broker's jobs is one on this.
class RetryQueue {
 public:
  // The job must not be here.
  void Add(uint64_t job, int64_t time);
  // Does nothing if the job is not here.
  void Remove(uint64_t job);
  // Returns nothing if the job does not wait.
  std::optional<int64_t> TimeOf(uint64_t job) const;
  // Removes the job whose time comes first, if it is not after `now`.
  std::optional<uint64_t> TakeDue(int64_t now);
  // Moves all times.
  void Shift(int64_t by);

  size_t size() const { return times_.size(); }
  template <typename F>
  void ForEach(F visit) const {
    for (const auto& [time, job] : order_) visit(job);
  }

 private:
  absl::btree_set<std::pair<int64_t, uint64_t>> order_;  // by time, then by job
  absl::flat_hash_map<uint64_t, int64_t> times_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RETRY_QUEUE_H_
