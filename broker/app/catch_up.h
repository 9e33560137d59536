// Reads for a watcher what is no longer in memory: the transitions that the store has, each with
// its job as it is now. Belongs to one stream.
#ifndef MUSTER_BROKER_APP_CATCH_UP_H_
#define MUSTER_BROKER_APP_CATCH_UP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "broker/store/store.h"
#include "contract/filter.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

class CatchUp {
 public:
  // `jobs` empty: those that the filter takes.
  CatchUp(const store::Store* store, store::Scope scope, std::vector<uint64_t> jobs,
          contract::Filter filter)
      : store_(store),
        scope_(std::move(scope)),
        jobs_(std::move(jobs)),
        filter_(std::move(filter)) {}

  struct Page {
    std::vector<v1::WatchJobsResponse> messages;
    std::vector<uint64_t> ended;  // jobs whose end is among them
    uint64_t read_up_to = 0;      // all up to this sequence is in the pages so far
  };
  // Reads the next transitions after a sequence, none of them after `up_to`.
  absl::StatusOr<Page> ReadAfter(uint64_t sequence, uint64_t up_to);

 private:
  // Reads the jobs that are still there.
  absl::StatusOr<absl::flat_hash_map<uint64_t, v1::Job>> ReadJobs(
      const std::vector<uint64_t>& ids) const;
  // The job's state before its transition; a filter is judged by both.
  absl::StatusOr<v1::JobState> StateBefore(const store::JobTransition& step);
  absl::StatusOr<bool> Takes(const store::JobTransition& step, const v1::Job& now);

  const store::Store* const store_;
  const store::Scope scope_;
  const std::vector<uint64_t> jobs_;
  const contract::Filter filter_;
  absl::flat_hash_map<uint64_t, v1::JobState> states_;  // of jobs, after their last step here
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CATCH_UP_H_
