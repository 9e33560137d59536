#include "contract/job_transitions.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "contract/states.h"

namespace muster::contract {
namespace {

using enum JobEvent;

bool IsEnd(JobStage stage) { return IsTerminal(StateOf(stage)); }
bool IsOnCluster(JobStage stage) {
  return stage != JobStage::kNew && !IsEnd(stage) && StateOf(stage) != v1::JOB_STATE_QUEUED;
}
bool IsOfRun(JobEvent event) { return event >= kRunWaits && event <= kFailOver; }

// The function follows the drawing in job_transitions.h, apart from the table.
bool IsExpected(JobStage stage, JobEvent event) {
  if (stage == JobStage::kNew) return event == kSubmit;
  if (IsEnd(stage) || event == kSubmit) return false;
  const bool is_pending = StateOf(stage) == v1::JOB_STATE_PENDING;
  if (event == kAssign) return stage == JobStage::kQueued;
  if (event == kCancel) return !IsCancelAsked(stage);
  if (event == kRelease) return IsHeld(stage);
  // Its run is the proof that a job's dependencies were met.
  if (event == kDependencyFails) return !IsOnCluster(stage);
  if (event == kPreempt) {
    return IsOnCluster(stage) && !is_pending && !IsCancelAsked(stage) && !IsPreempted(stage);
  }
  if (event == kIsPreempted) return IsPreempted(stage);
  // Its run is ended.
  if (IsPreempted(stage) && (event == kHold || event == kWithdraw)) return false;
  if (event == kHold) {
    return !IsHeld(stage) && !IsCancelAsked(stage) && (is_pending || stage == JobStage::kQueued);
  }
  if (event == kWithdraw) return is_pending && !IsCancelAsked(stage) && !IsWithdrawn(stage);
  if (event == kComesBack || event == kBeginsFirst) return IsWithdrawn(stage);
  if (!IsOnCluster(stage)) return false;
  // Its run ends so because it was asked for: it comes back.
  if (event == kRunIsCanceled && (IsWithdrawn(stage) || IsPreempted(stage))) return false;
  if (event == kRetry || event == kFailOver) return !IsCancelAsked(stage);
  // A held run that starts is released first.
  const bool starts = event == kRunRuns || event == kRunSuspends || event == kRunSucceeds;
  return !(starts && (IsHeld(stage) || IsWithdrawn(stage)));
}

// The state after a run's event, whatever is wished.
v1::JobState StateAfter(JobEvent event, bool is_cancel_asked) {
  switch (event) {
    case kRunWaits:
      return v1::JOB_STATE_PENDING;
    case kRunRuns:
      return v1::JOB_STATE_RUNNING;
    case kRunSuspends:
      return v1::JOB_STATE_SUSPENDED;
    case kRunSucceeds:
      return v1::JOB_STATE_SUCCEEDED;
    case kRunFails:
      return is_cancel_asked ? v1::JOB_STATE_CANCELED : v1::JOB_STATE_FAILED;
    case kRunIsCanceled:
      return v1::JOB_STATE_CANCELED;
    default:
      return v1::JOB_STATE_QUEUED;
  }
}

template <typename F>
void ForEachPair(F check) {
  for (int stage = 0; stage < kJobStages; ++stage) {
    for (int event = 0; event < kJobEvents; ++event) {
      SCOPED_TRACE(testing::Message() << "stage " << stage << ", event " << event);
      check(static_cast<JobStage>(stage), static_cast<JobEvent>(event));
    }
  }
}

TEST(JobTransitions, AreTakenExactlyAsDrawnForEveryPairOfStageAndEvent) {
  ForEachPair([](JobStage stage, JobEvent event) {
    EXPECT_EQ(Next(stage, event).has_value(), IsExpected(stage, event));
  });
}

TEST(JobTransitions, FollowTheRun) {
  ForEachPair([](JobStage stage, JobEvent event) {
    const auto next = Next(stage, event);
    if (!next || !IsOfRun(event)) return;
    EXPECT_EQ(StateOf(*next), StateAfter(event, IsCancelAsked(stage)));
    EXPECT_EQ(IsHeld(*next), IsHeld(stage) && !IsEnd(*next));
    EXPECT_EQ(IsReleased(*next), IsReleased(stage) && IsOnCluster(*next));
  });
}

TEST(JobTransitions, EndAJobWhoseCancelWasAskedForAsCanceledOrSucceeded) {
  ForEachPair([](JobStage stage, JobEvent event) {
    const auto next = Next(stage, event);
    if (!next || !(IsCancelAsked(stage) || event == kCancel)) return;
    EXPECT_TRUE(IsCancelAsked(*next)) << "a cancel is never taken back";
    EXPECT_NE(StateOf(*next), v1::JOB_STATE_QUEUED);
    EXPECT_NE(StateOf(*next), v1::JOB_STATE_FAILED);
  });
}

TEST(JobTransitions, OfWishesChangeNothingElse) {
  ForEachPair([](JobStage stage, JobEvent event) {
    const auto next = Next(stage, event);
    if (!next || (event != kHold && event != kRelease && event != kCancel)) return;
    EXPECT_EQ(IsHeld(*next), event == kHold);
    EXPECT_EQ(IsReleased(*next), event == kRelease && IsOnCluster(stage) && !IsWithdrawn(stage));
    EXPECT_EQ(IsWithdrawn(*next), IsWithdrawn(stage) && event != kCancel);
    EXPECT_FALSE(IsPreempted(*next)) << "its user's cancel counts";
    const bool ends = event == kCancel && !IsOnCluster(stage);
    EXPECT_EQ(StateOf(*next), ends ? v1::JOB_STATE_CANCELED : StateOf(stage));
  });
}

TEST(JobTransitions, TakeAWithdrawnRunBackAndKeepTheHold) {
  ForEachPair([](JobStage stage, JobEvent event) {
    const auto next = Next(stage, event);
    if (!next) return;
    if (event == kWithdraw) {
      EXPECT_TRUE(IsWithdrawn(*next));
      EXPECT_EQ(StateOf(*next), v1::JOB_STATE_PENDING);
      EXPECT_EQ(IsHeld(*next), IsHeld(stage));
    } else if (event == kComesBack) {
      EXPECT_EQ(StateOf(*next), v1::JOB_STATE_QUEUED);
      EXPECT_EQ(IsHeld(*next), IsHeld(stage));
    } else if (event == kBeginsFirst) {
      EXPECT_EQ(*next, JobStage::kPendingReleased) << "its agent must let it go";
    } else {
      EXPECT_LE(IsWithdrawn(*next), IsWithdrawn(stage));
    }
  });
}

TEST(JobTransitions, TakeAPreemptedJobToTheQueueUnlessItsRunEndsFirst) {
  ForEachPair([](JobStage stage, JobEvent event) {
    const auto next = Next(stage, event);
    if (!next) return;
    if (event == kPreempt) {
      EXPECT_TRUE(IsPreempted(*next));
      EXPECT_EQ(StateOf(*next), StateOf(stage));
    } else if (event == kIsPreempted) {
      EXPECT_EQ(*next, JobStage::kQueued);
    } else if (IsPreempted(stage)) {
      const bool goes_on = event == kRunWaits || event == kRunRuns || event == kRunSuspends;
      EXPECT_EQ(IsPreempted(*next), goes_on);
    } else {
      EXPECT_FALSE(IsPreempted(*next));
    }
  });
}

TEST(JobTransitions, FailAJobWhoseDependencyFailsWithoutARun) {
  ForEachPair([](JobStage stage, JobEvent event) {
    if (event != kDependencyFails) return;
    const auto next = Next(stage, event);
    EXPECT_EQ(next.has_value(), StateOf(stage) == v1::JOB_STATE_QUEUED);
    if (next) {
      EXPECT_EQ(StateOf(*next), v1::JOB_STATE_FAILED);
    }
  });
}

TEST(JobTransitions, AreListedOnceAndReachEveryStage) {
  std::set<std::pair<JobStage, JobEvent>> listed;
  std::set<JobStage> reached = {JobStage::kNew};
  for (const JobTransition& row : kJobTransitions) {
    EXPECT_TRUE(listed.emplace(row.from, row.event).second);
    reached.insert(row.to);
  }
  EXPECT_EQ(reached.size(), static_cast<size_t>(kJobStages));
}

}  // namespace
}  // namespace muster::contract
