// A job as it was after an earlier step, as far as filters look at it: made from its steps up to
// there and from what the store has of it now. Priority and labels come with the steps; an earlier
// run on a cluster that was forgotten has no kind of cluster any more.
#ifndef MUSTER_BROKER_STORE_JOB_PAST_H_
#define MUSTER_BROKER_STORE_JOB_PAST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "broker/store/store.h"
#include "muster/v1/job.pb.h"

namespace muster::store {

using KindOfCluster = std::function<v1::ClusterKind(const std::string& cluster)>;

// Gathers the facts that the steps of a job tell, from its first one up to one of them. Small: a
// watcher that catches up keeps many.
class StepsSoFar {
 public:
  void Take(const v1::Transition& step);

  // The job right after these steps, without runs. `now`: with all its runs; see
  // JobTransition::edited_later.
  v1::Job Then(const v1::Job& now, const std::optional<Editable>& edited_later,
               const KindOfCluster& kind_of) const;
  // Sets what the steps alone tell.
  void Show(v1::Job* job) const;

  bool empty() const { return job_sequence_ == 0; }
  uint64_t sequence() const { return sequence_; }          // of the latest step
  uint64_t job_sequence() const { return job_sequence_; }  // of the latest step
  uint32_t run() const { return run_; }                    // the latest; 0: none
  v1::RunState run_state() const { return run_state_; }    // of that run

 private:
  uint64_t sequence_ = 0;
  uint64_t job_sequence_ = 0;
  uint32_t run_ = 0;
  v1::RunState run_state_ = v1::RUN_STATE_UNSPECIFIED;
  uint32_t last_started_run_ = 0;  // or may have: the run itself knows; 0: none
  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  bool is_held_ = false;
  bool is_withdrawn_ = false;
  bool is_preempted_ = false;
  bool is_cancel_asked_ = false;
};

struct JobPast {
  StepsSoFar steps;
  std::optional<Editable> edited_later;  // as of the latest of these steps
  bool run_moved_on = false;             // its latest run has had later steps
  // The latest of these steps that asked for a hold; null if none did.
  std::shared_ptr<const v1::Transition> hold;
};
// Steps of one job that are read to find what it was.
inline constexpr int kMaxPastSteps = 10'000;
// Reads a job's steps up to a sequence. Empty: it had none, or more than kMaxPastSteps. Later edits
// are right for a caller that has read the job before.
absl::StatusOr<JobPast> ReadPast(const Store& store, const Scope& scope, uint64_t job,
                                 uint64_t up_to_sequence);

// The part of a run that filters look at, its number, state and start.
v1::Run ForFilters(const v1::Run& run);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_JOB_PAST_H_
