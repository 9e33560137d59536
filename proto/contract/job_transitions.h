// The one table of what may happen to a job. The broker's core, the tests and docs/concepts.md all
// read it.
//
//   new -submit-> QUEUED -assign-> PENDING <-> RUNNING <-> SUSPENDED
//                   ^                  |          |            |
//                   |                  +----------+------------+
//                   |                             |
//                   +------retry, fail-over-------+-> SUCCEEDED | FAILED | CANCELED
//
// Five wishes are part of a stage, each of them where it can be true:
//
//   held       QUEUED and PENDING: hold, until release or cancel. A held job is never assigned.
//   released   PENDING, RUNNING and SUSPENDED: a held run was let go, and its agent must hear so on
//              every connection.
//   canceling  PENDING, RUNNING and SUSPENDED: cancel. No retry follows, and every end but a
//              success is CANCELED. A QUEUED job is CANCELED at once.
//   withdrawn  PENDING, also held: its cluster is to give the run back before it begins. The run is
//              held there, and ended once it is known to be held; the job is then QUEUED. If the
//              run begins first, it is let go and goes on.
//   preempted  RUNNING and SUSPENDED, and PENDING after these: a job that comes first takes its
//              room. Its run is ended, and the job is then QUEUED. A run that ends by itself first
//              is its job's end.
//
// A QUEUED job, held or not, is FAILED at once if a job that it waits for ends otherwise than it
// needs (JobSpec.depends_on).
//
// A job follows its run between PENDING, RUNNING and SUSPENDED: any of them may follow any other,
// because agents see a cluster only now and then and because schedulers requeue.
#ifndef MUSTER_PROTO_CONTRACT_JOB_TRANSITIONS_H_
#define MUSTER_PROTO_CONTRACT_JOB_TRANSITIONS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "muster/v1/job.pb.h"

namespace muster::contract {

// A job's state together with what its user wants of it. The names of the stages that have ended
// tell whether a cancel was asked for.
enum class JobStage : uint8_t {
  kNew,  // not submitted yet
  kQueued,
  kQueuedHeld,
  kPending,
  kPendingHeld,
  kPendingReleased,
  kPendingCanceling,
  kPendingWithdrawn,
  kPendingHeldWithdrawn,
  kRunning,
  kRunningReleased,
  kRunningCanceling,
  kPendingPreempted,
  kRunningPreempted,
  kSuspendedPreempted,
  kSuspended,
  kSuspendedReleased,
  kSuspendedCanceling,
  kSucceeded,
  kSucceededBeforeCancel,  // the cancel did not reach the run in time
  kFailed,
  kCanceled,           // as its user asked
  kCanceledByCluster,  // somebody ended its run past Muster
};
inline constexpr int kJobStages = 23;

enum class JobEvent : uint8_t {
  kSubmit,
  kAssign,       // a cluster was chosen for the next run
  kRunWaits,     // the run is on its way to its start, or waits again
  kRunRuns,      // its command runs, or has ended and is being cleared up
  kRunSuspends,  // the scheduler has stopped the command for a while
  kRunSucceeds,
  kRunFails,  // or is LOST, and no other run follows
  kRunIsCanceled,
  kRetry,     // the run failed, and another one follows
  kFailOver,  // the run was given up with its cluster, and another one follows
  kHold,
  kRelease,
  kCancel,
  kDependencyFails,  // a job that this one waits for ended otherwise than it needs
  kWithdraw,         // its cluster is to give the run back before it begins
  kComesBack,        // the run has ended without a beginning, as it was to
  kBeginsFirst,      // the run began before it could be held
  kPreempt,          // its run is to end, because a job that comes first takes its room
  kIsPreempted,      // its run has ended for that
};
inline constexpr int kJobEvents = 19;

struct JobTransition {
  JobStage from;
  JobEvent event;
  JobStage to;
};

// The transitions by stage. The table refuses every event that it does not list.
inline constexpr auto kJobTransitions = [] {
  using enum JobStage;
  using enum JobEvent;
  return std::to_array<JobTransition>({
      {kNew, kSubmit, kQueued},

      {kQueued, kAssign, kPending},
      {kQueued, kHold, kQueuedHeld},
      {kQueued, kCancel, kCanceled},
      {kQueued, kDependencyFails, kFailed},

      {kQueuedHeld, kRelease, kQueued},
      {kQueuedHeld, kCancel, kCanceled},
      {kQueuedHeld, kDependencyFails, kFailed},

      {kPending, kRunWaits, kPending},
      {kPending, kRunRuns, kRunning},
      {kPending, kRunSuspends, kSuspended},
      {kPending, kRunSucceeds, kSucceeded},
      {kPending, kRunFails, kFailed},
      {kPending, kRunIsCanceled, kCanceledByCluster},
      {kPending, kRetry, kQueued},
      {kPending, kFailOver, kQueued},
      {kPending, kHold, kPendingHeld},
      {kPending, kCancel, kPendingCanceling},
      {kPending, kWithdraw, kPendingWithdrawn},

      // A run that starts all the same is released first: the hold came too late.
      {kPendingHeld, kRunWaits, kPendingHeld},
      {kPendingHeld, kRunFails, kFailed},
      {kPendingHeld, kRunIsCanceled, kCanceledByCluster},
      {kPendingHeld, kRetry, kQueuedHeld},
      {kPendingHeld, kFailOver, kQueuedHeld},
      {kPendingHeld, kRelease, kPendingReleased},
      {kPendingHeld, kCancel, kPendingCanceling},
      {kPendingHeld, kWithdraw, kPendingHeldWithdrawn},

      {kPendingReleased, kRunWaits, kPendingReleased},
      {kPendingReleased, kRunRuns, kRunningReleased},
      {kPendingReleased, kRunSuspends, kSuspendedReleased},
      {kPendingReleased, kRunSucceeds, kSucceeded},
      {kPendingReleased, kRunFails, kFailed},
      {kPendingReleased, kRunIsCanceled, kCanceledByCluster},
      {kPendingReleased, kRetry, kQueued},
      {kPendingReleased, kFailOver, kQueued},
      {kPendingReleased, kHold, kPendingHeld},
      {kPendingReleased, kCancel, kPendingCanceling},
      {kPendingReleased, kWithdraw, kPendingWithdrawn},

      {kPendingCanceling, kRunWaits, kPendingCanceling},
      {kPendingCanceling, kRunRuns, kRunningCanceling},
      {kPendingCanceling, kRunSuspends, kSuspendedCanceling},
      {kPendingCanceling, kRunSucceeds, kSucceededBeforeCancel},
      {kPendingCanceling, kRunFails, kCanceled},
      {kPendingCanceling, kRunIsCanceled, kCanceled},

      {kPendingWithdrawn, kRunWaits, kPendingWithdrawn},
      {kPendingWithdrawn, kRunFails, kFailed},
      {kPendingWithdrawn, kComesBack, kQueued},
      {kPendingWithdrawn, kBeginsFirst, kPendingReleased},
      {kPendingWithdrawn, kRetry, kQueued},
      {kPendingWithdrawn, kFailOver, kQueued},
      {kPendingWithdrawn, kHold, kPendingHeldWithdrawn},
      {kPendingWithdrawn, kCancel, kPendingCanceling},

      {kPendingHeldWithdrawn, kRunWaits, kPendingHeldWithdrawn},
      {kPendingHeldWithdrawn, kRunFails, kFailed},
      {kPendingHeldWithdrawn, kComesBack, kQueuedHeld},
      {kPendingHeldWithdrawn, kBeginsFirst, kPendingReleased},
      {kPendingHeldWithdrawn, kRetry, kQueuedHeld},
      {kPendingHeldWithdrawn, kFailOver, kQueuedHeld},
      {kPendingHeldWithdrawn, kRelease, kPendingWithdrawn},
      {kPendingHeldWithdrawn, kCancel, kPendingCanceling},

      {kRunning, kRunWaits, kPending},
      {kRunning, kRunRuns, kRunning},
      {kRunning, kRunSuspends, kSuspended},
      {kRunning, kRunSucceeds, kSucceeded},
      {kRunning, kRunFails, kFailed},
      {kRunning, kRunIsCanceled, kCanceledByCluster},
      {kRunning, kRetry, kQueued},
      {kRunning, kFailOver, kQueued},
      {kRunning, kCancel, kRunningCanceling},
      {kRunning, kPreempt, kRunningPreempted},

      {kRunningReleased, kRunWaits, kPendingReleased},
      {kRunningReleased, kRunRuns, kRunningReleased},
      {kRunningReleased, kRunSuspends, kSuspendedReleased},
      {kRunningReleased, kRunSucceeds, kSucceeded},
      {kRunningReleased, kRunFails, kFailed},
      {kRunningReleased, kRunIsCanceled, kCanceledByCluster},
      {kRunningReleased, kRetry, kQueued},
      {kRunningReleased, kFailOver, kQueued},
      {kRunningReleased, kCancel, kRunningCanceling},
      {kRunningReleased, kPreempt, kRunningPreempted},

      {kRunningCanceling, kRunWaits, kPendingCanceling},
      {kRunningCanceling, kRunRuns, kRunningCanceling},
      {kRunningCanceling, kRunSuspends, kSuspendedCanceling},
      {kRunningCanceling, kRunSucceeds, kSucceededBeforeCancel},
      {kRunningCanceling, kRunFails, kCanceled},
      {kRunningCanceling, kRunIsCanceled, kCanceled},

      {kSuspended, kRunWaits, kPending},
      {kSuspended, kRunRuns, kRunning},
      {kSuspended, kRunSuspends, kSuspended},
      {kSuspended, kRunSucceeds, kSucceeded},
      {kSuspended, kRunFails, kFailed},
      {kSuspended, kRunIsCanceled, kCanceledByCluster},
      {kSuspended, kRetry, kQueued},
      {kSuspended, kFailOver, kQueued},
      {kSuspended, kCancel, kSuspendedCanceling},
      {kSuspended, kPreempt, kSuspendedPreempted},

      {kSuspendedReleased, kRunWaits, kPendingReleased},
      {kSuspendedReleased, kRunRuns, kRunningReleased},
      {kSuspendedReleased, kRunSuspends, kSuspendedReleased},
      {kSuspendedReleased, kRunSucceeds, kSucceeded},
      {kSuspendedReleased, kRunFails, kFailed},
      {kSuspendedReleased, kRunIsCanceled, kCanceledByCluster},
      {kSuspendedReleased, kRetry, kQueued},
      {kSuspendedReleased, kFailOver, kQueued},
      {kSuspendedReleased, kCancel, kSuspendedCanceling},
      {kSuspendedReleased, kPreempt, kSuspendedPreempted},

      {kPendingPreempted, kRunWaits, kPendingPreempted},
      {kPendingPreempted, kRunRuns, kRunningPreempted},
      {kPendingPreempted, kRunSuspends, kSuspendedPreempted},
      {kPendingPreempted, kRunSucceeds, kSucceeded},
      {kPendingPreempted, kRunFails, kFailed},
      {kPendingPreempted, kIsPreempted, kQueued},
      {kPendingPreempted, kRetry, kQueued},
      {kPendingPreempted, kFailOver, kQueued},
      {kPendingPreempted, kCancel, kPendingCanceling},

      {kRunningPreempted, kRunWaits, kPendingPreempted},
      {kRunningPreempted, kRunRuns, kRunningPreempted},
      {kRunningPreempted, kRunSuspends, kSuspendedPreempted},
      {kRunningPreempted, kRunSucceeds, kSucceeded},
      {kRunningPreempted, kRunFails, kFailed},
      {kRunningPreempted, kIsPreempted, kQueued},
      {kRunningPreempted, kRetry, kQueued},
      {kRunningPreempted, kFailOver, kQueued},
      {kRunningPreempted, kCancel, kRunningCanceling},

      {kSuspendedPreempted, kRunWaits, kPendingPreempted},
      {kSuspendedPreempted, kRunRuns, kRunningPreempted},
      {kSuspendedPreempted, kRunSuspends, kSuspendedPreempted},
      {kSuspendedPreempted, kRunSucceeds, kSucceeded},
      {kSuspendedPreempted, kRunFails, kFailed},
      {kSuspendedPreempted, kIsPreempted, kQueued},
      {kSuspendedPreempted, kRetry, kQueued},
      {kSuspendedPreempted, kFailOver, kQueued},
      {kSuspendedPreempted, kCancel, kSuspendedCanceling},

      {kSuspendedCanceling, kRunWaits, kPendingCanceling},
      {kSuspendedCanceling, kRunRuns, kRunningCanceling},
      {kSuspendedCanceling, kRunSuspends, kSuspendedCanceling},
      {kSuspendedCanceling, kRunSucceeds, kSucceededBeforeCancel},
      {kSuspendedCanceling, kRunFails, kCanceled},
      {kSuspendedCanceling, kRunIsCanceled, kCanceled},
  });
}();

// The number of the next stage, by stage and event; 0 if the event is refused. Nothing leads to
// kNew, whose number that is.
inline constexpr auto kNextJobStages = [] {
  std::array<std::array<uint8_t, kJobEvents>, kJobStages> next{};
  for (const JobTransition& row : kJobTransitions) {
    next[static_cast<int>(row.from)][static_cast<int>(row.event)] = static_cast<uint8_t>(row.to);
  }
  return next;
}();
static_assert(static_cast<int>(JobStage::kNew) == 0);

// Returns the stage that follows. Nothing: the event is refused in this stage.
constexpr std::optional<JobStage> Next(JobStage from, JobEvent event) {
  const uint8_t to = kNextJobStages[static_cast<int>(from)][static_cast<int>(event)];
  if (to == 0) return std::nullopt;
  return static_cast<JobStage>(to);
}

// Returns the state that clients are shown.
constexpr v1::JobState StateOf(JobStage stage) {
  switch (stage) {
    case JobStage::kNew:
      return v1::JOB_STATE_UNSPECIFIED;
    case JobStage::kQueued:
    case JobStage::kQueuedHeld:
      return v1::JOB_STATE_QUEUED;
    case JobStage::kPending:
    case JobStage::kPendingHeld:
    case JobStage::kPendingReleased:
    case JobStage::kPendingCanceling:
    case JobStage::kPendingWithdrawn:
    case JobStage::kPendingHeldWithdrawn:
    case JobStage::kPendingPreempted:
      return v1::JOB_STATE_PENDING;
    case JobStage::kRunning:
    case JobStage::kRunningReleased:
    case JobStage::kRunningCanceling:
    case JobStage::kRunningPreempted:
      return v1::JOB_STATE_RUNNING;
    case JobStage::kSuspended:
    case JobStage::kSuspendedReleased:
    case JobStage::kSuspendedCanceling:
    case JobStage::kSuspendedPreempted:
      return v1::JOB_STATE_SUSPENDED;
    case JobStage::kSucceeded:
    case JobStage::kSucceededBeforeCancel:
      return v1::JOB_STATE_SUCCEEDED;
    case JobStage::kFailed:
      return v1::JOB_STATE_FAILED;
    case JobStage::kCanceled:
    case JobStage::kCanceledByCluster:
      return v1::JOB_STATE_CANCELED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

// Tells whether a user has asked for a cancel, also of a job that has ended.
constexpr bool IsCancelAsked(JobStage stage) {
  return stage == JobStage::kPendingCanceling || stage == JobStage::kRunningCanceling ||
         stage == JobStage::kSuspendedCanceling || stage == JobStage::kSucceededBeforeCancel ||
         stage == JobStage::kCanceled;
}
// Tells whether the job waits for its release.
constexpr bool IsHeld(JobStage stage) {
  return stage == JobStage::kQueuedHeld || stage == JobStage::kPendingHeld ||
         stage == JobStage::kPendingHeldWithdrawn;
}
// Tells whether the job's run is to come back before it begins.
constexpr bool IsWithdrawn(JobStage stage) {
  return stage == JobStage::kPendingWithdrawn || stage == JobStage::kPendingHeldWithdrawn;
}
// Tells whether the job's run is to end, because a job that comes first takes its room.
constexpr bool IsPreempted(JobStage stage) {
  return stage == JobStage::kPendingPreempted || stage == JobStage::kRunningPreempted ||
         stage == JobStage::kSuspendedPreempted;
}
// Tells whether the job's run was held, so that the agent must hear of the release.
constexpr bool IsReleased(JobStage stage) {
  return stage == JobStage::kPendingReleased || stage == JobStage::kRunningReleased ||
         stage == JobStage::kSuspendedReleased;
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_JOB_TRANSITIONS_H_
