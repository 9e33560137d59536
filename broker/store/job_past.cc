#include "broker/store/job_past.h"

#include <algorithm>

#include "contract/states.h"

namespace muster::store {
namespace {

// Steps that are read at a time.
constexpr int kStepsPerRead = 500;

// Tells whether the step is one of a run whose command has started, or has ended with or without
// that.
bool MayHaveStarted(const v1::Transition& step) {
  return step.run() > 0 &&
         (contract::IsTerminal(step.run_state()) || step.job_state() == v1::JOB_STATE_RUNNING ||
          step.job_state() == v1::JOB_STATE_SUSPENDED);
}

void ShowRun(const v1::Run& run, const StepsSoFar& steps, v1::Job* job) {
  if (!contract::IsTerminal(steps.run_state())) return;
  if (run.has_exit()) *job->mutable_exit() = run.exit();
  if (run.has_failure() && job->state() != v1::JOB_STATE_CANCELED)
    *job->mutable_failure() = run.failure();
}

}  // namespace

void StepsSoFar::Take(const v1::Transition& step) {
  sequence_ = step.sequence();
  job_sequence_ = step.job_sequence();
  state_ = step.job_state();
  if (step.run() > 0 && step.run() >= run_) {
    run_ = step.run();
    run_state_ = step.run_state();
  }
  if (MayHaveStarted(step)) last_started_run_ = std::max(last_started_run_, step.run());
  if (step.kind() == v1::TRANSITION_KIND_CANCEL_REQUESTED) is_cancel_asked_ = true;
  if (step.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED) is_held_ = true;
  if (step.kind() == v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED) {
    // A run that has begun is preempted.
    (state_ == v1::JOB_STATE_PENDING ? is_withdrawn_ : is_preempted_) = true;
  }
  const bool has_begun = step.kind() == v1::TRANSITION_KIND_RELEASE_REQUESTED &&
                         step.evidence().source() == v1::EVIDENCE_SOURCE_BROKER;
  if (state_ != v1::JOB_STATE_PENDING || is_cancel_asked_ || has_begun) is_withdrawn_ = false;
  if (state_ == v1::JOB_STATE_QUEUED || contract::IsTerminal(state_) || is_cancel_asked_)
    is_preempted_ = false;
  const bool waits = state_ == v1::JOB_STATE_QUEUED || state_ == v1::JOB_STATE_PENDING;
  if (step.kind() == v1::TRANSITION_KIND_RELEASE_REQUESTED || is_cancel_asked_ || !waits)
    is_held_ = false;
}

void StepsSoFar::Show(v1::Job* job) const {
  job->set_job_sequence(job_sequence_);
  job->set_state(state_);
  job->set_held(is_held_);
  if (!is_withdrawn_ && !is_preempted_) job->clear_withdrawal();
  job->set_cancel_requested(is_cancel_asked_);
  if (!contract::IsTerminal(state_)) job->clear_end_time();
}

v1::Job StepsSoFar::Then(const v1::Job& now, const std::optional<Editable>& edited_later,
                         const KindOfCluster& kind_of) const {
  v1::Job then = now;
  then.clear_runs();
  then.clear_exit();
  then.clear_failure();
  then.clear_state_reason();
  then.clear_retry_time();
  then.clear_cluster();
  then.clear_cluster_kind();
  Show(&then);
  bool has_started = false;
  for (const v1::Run& run : now.runs()) {
    has_started |= run.has_start_time() && run.number() <= last_started_run_;
    if (run.number() != run_) continue;
    then.set_cluster(run.cluster());
    then.set_cluster_kind(run.cluster() == now.cluster() ? now.cluster_kind()
                                                         : kind_of(run.cluster()));
    ShowRun(run, *this, &then);
  }
  // Without a run, another job's end let it fail.
  if (state_ == v1::JOB_STATE_FAILED && run_ == 0 && now.has_failure())
    *then.mutable_failure() = now.failure();
  if (!has_started) then.clear_start_time();
  if (edited_later) {
    then.set_priority(edited_later->priority);
    then.clear_labels();
    for (const auto& [key, value] : edited_later->labels) (*then.mutable_labels())[key] = value;
  }
  return then;
}

absl::StatusOr<JobPast> ReadPast(const Store& store, const Scope& scope, uint64_t job,
                                 uint64_t up_to_sequence) {
  JobPast past;
  uint64_t after = 0;
  for (int read = 0; read < kMaxPastSteps; read += kStepsPerRead) {
    const auto steps = store.ListTransitions(scope, {&job, 1}, after, kStepsPerRead);
    if (!steps.ok()) return steps.status();
    for (const JobTransition& step : *steps) {
      after = step.transition.sequence();
      if (after > up_to_sequence) {
        past.run_moved_on |= step.transition.run() == past.steps.run();
        continue;
      }
      past.steps.Take(step.transition);
      if (step.transition.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED)
        past.hold = std::make_shared<const v1::Transition>(step.transition);
      past.edited_later = step.edited_later;
    }
    if (after > up_to_sequence || steps->size() < kStepsPerRead) return past;
  }
  return JobPast{};
}

v1::Run ForFilters(const v1::Run& run) {
  v1::Run seen;
  seen.set_number(run.number());
  seen.set_cluster(run.cluster());
  seen.set_state(run.state());
  if (run.has_start_time()) *seen.mutable_start_time() = run.start_time();
  if (run.has_exit()) *seen.mutable_exit() = run.exit();
  if (run.has_failure()) seen.mutable_failure()->set_failure_class(run.failure().failure_class());
  return seen;
}

}  // namespace muster::store
