// Reads for a watcher what is no longer in memory: the transitions that the store has, and the
// latest change of each run that no transition tells, each with its job as it is now. A filter is
// judged by what the job was then. Belongs to one stream.
#ifndef MUSTER_BROKER_APP_CATCH_UP_H_
#define MUSTER_BROKER_APP_CATCH_UP_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "broker/store/job_past.h"
#include "broker/store/store.h"
#include "contract/filter.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

class CatchUp {
 public:
  // Without `jobs` it tells of those that the filter takes, as they were before or after each step.
  CatchUp(const store::Store* store, store::KindOfCluster kind_of, store::Scope scope,
          std::vector<uint64_t> jobs, contract::Filter filter)
      : store_(store),
        kind_of_(std::move(kind_of)),
        scope_(std::move(scope)),
        jobs_(std::move(jobs)),
        filter_(std::move(filter)) {}

  struct Page {
    std::vector<v1::JobChange> changes;
    std::vector<uint64_t> ended;  // jobs whose end is among them
    uint64_t read_up_to = 0;      // all up to this sequence is in the pages so far
  };
  // Returns the next changes after a sequence, none of them after `up_to`.
  absl::StatusOr<Page> ReadAfter(uint64_t sequence, uint64_t up_to);

 private:
  using Jobs = absl::flat_hash_map<uint64_t, v1::Job>;
  // A page of the changes that the store has after a sequence.
  struct Found {
    std::vector<store::JobTransition> steps;
    std::vector<store::RunChange> changes;
    uint64_t up_to = 0;  // everything up to this sequence is among them
  };

  absl::StatusOr<Found> List(uint64_t sequence, uint64_t up_to) const;
  // Reads those that are still there, with their runs if there is a filter.
  absl::StatusOr<Jobs> ReadJobs(const Found& found) const;
  absl::Status Give(store::JobTransition& step, const Jobs& jobs, Page* page);
  absl::Status Give(store::RunChange& changed, const Jobs& jobs, Page* page);
  // Returns the steps of a job before this sequence.
  absl::StatusOr<store::StepsSoFar*> PastOf(uint64_t job, uint64_t sequence);
  // Returns the fields that its user changed later, as they were after the latest step so far.
  absl::StatusOr<std::optional<store::Editable>> EditedSince(uint64_t job,
                                                             const store::StepsSoFar& steps) const;
  // Tells whether the filter takes the job as it was after the step, or before it.
  absl::StatusOr<bool> Takes(const store::JobTransition& step, const v1::Job& now);
  absl::StatusOr<bool> Takes(const store::RunChange& change, const v1::Job& now);

  const store::Store* const store_;
  const store::KindOfCluster kind_of_;
  const store::Scope scope_;
  const std::vector<uint64_t> jobs_;
  const contract::Filter filter_;
  absl::flat_hash_map<uint64_t, store::StepsSoFar> pasts_;  // of jobs, up to their last step here
  // Pages were read up to this change: pasts_ know nothing of later ones that were read
  // elsewhere.
  uint64_t read_up_to_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CATCH_UP_H_
