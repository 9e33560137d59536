#include "broker/core/job_machine.h"

#include "absl/time/time.h"

namespace muster::core {
namespace {

using contract::JobEvent;
using contract::JobStage;

bool IsPreemption(const LiveJob& stored) {
  return stored.withdrawal && stored.withdrawal->cause() == v1::WITHDRAWAL_CAUSE_PREEMPTION;
}

JobStage PendingStage(const LiveJob& stored) {
  if (stored.cancel_requested) return JobStage::kPendingCanceling;
  if (IsPreemption(stored)) return JobStage::kPendingPreempted;
  if (stored.withdrawal) {
    return stored.hold == HoldState::kHeld ? JobStage::kPendingHeldWithdrawn
                                           : JobStage::kPendingWithdrawn;
  }
  if (stored.hold == HoldState::kHeld) return JobStage::kPendingHeld;
  return stored.hold == HoldState::kReleased ? JobStage::kPendingReleased : JobStage::kPending;
}

JobStage StageOf(const LiveJob& stored) {
  const bool has_hold = stored.hold != HoldState::kNone;
  switch (stored.state) {
    case v1::JOB_STATE_QUEUED:
      return stored.hold == HoldState::kHeld ? JobStage::kQueuedHeld : JobStage::kQueued;
    case v1::JOB_STATE_PENDING:
      return PendingStage(stored);
    case v1::JOB_STATE_RUNNING:
      if (stored.cancel_requested) return JobStage::kRunningCanceling;
      if (IsPreemption(stored)) return JobStage::kRunningPreempted;
      return has_hold ? JobStage::kRunningReleased : JobStage::kRunning;
    case v1::JOB_STATE_SUSPENDED:
      if (stored.cancel_requested) return JobStage::kSuspendedCanceling;
      if (IsPreemption(stored)) return JobStage::kSuspendedPreempted;
      return has_hold ? JobStage::kSuspendedReleased : JobStage::kSuspended;
    case v1::JOB_STATE_SUCCEEDED:
      return stored.cancel_requested ? JobStage::kSucceededBeforeCancel : JobStage::kSucceeded;
    case v1::JOB_STATE_FAILED:
      return JobStage::kFailed;
    case v1::JOB_STATE_CANCELED:
      return stored.cancel_requested ? JobStage::kCanceled : JobStage::kCanceledByCluster;
    default:
      return JobStage::kNew;
  }
}

}  // namespace

Job::Job(const LiveJob& stored)
    : sequence_(static_cast<uint32_t>(stored.job_sequence)),
      runs_(static_cast<uint16_t>(stored.runs)),
      stage_(StageOf(stored)),
      has_started_(stored.start_time.has_value()),
      returned_(static_cast<uint16_t>(stored.returned_runs)),
      fail_overs_(static_cast<uint8_t>(stored.fail_overs)),
      priority(static_cast<int16_t>(stored.priority)) {
  if (has_started_) start_unix_micros_ = absl::ToUnixMicros(*stored.start_time);
}

bool Job::Apply(const JobChange& change) {
  const std::optional<JobStage> next = contract::Next(stage_, change.event);
  if (!next) return false;
  stage_ = *next;
  if (change.event == JobEvent::kAssign) {
    cluster_ = change.cluster;
    ++runs_;
  }
  if (change.event == JobEvent::kFailOver) ++fail_overs_;
  if (is_queued()) cluster_ = 0;
  if (change.event == JobEvent::kComesBack || change.event == JobEvent::kIsPreempted ||
      change.is_refused)
    ++returned_;
  if (change.start_unix_micros && !has_started_) {
    start_unix_micros_ = *change.start_unix_micros;
    has_started_ = true;
  }
  return true;
}

bool Job::is_on_cluster() const {
  return state() == v1::JOB_STATE_PENDING || state() == v1::JOB_STATE_RUNNING ||
         state() == v1::JOB_STATE_SUSPENDED;
}

HoldState Job::hold() const {
  if (held()) return HoldState::kHeld;
  return released() ? HoldState::kReleased : HoldState::kNone;
}

std::optional<int64_t> Job::start_unix_micros() const {
  return has_started_ ? std::optional<int64_t>(start_unix_micros_) : std::nullopt;
}

}  // namespace muster::core
