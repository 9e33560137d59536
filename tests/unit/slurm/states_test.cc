#include "agents/slurm/states.h"

#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

struct Case {
  std::string_view text;
  JobPhase phase;
  std::string_view cancelled_by;
};

TEST(ParseStateTest, EveryWordThatSlurmPrintsHasItsPhase) {
  const Case cases[] = {
      {"PENDING", JobPhase::kPending, ""},
      {"CONFIGURING", JobPhase::kStarting, ""},
      {"RUNNING", JobPhase::kRunning, ""},
      {"RESIZING", JobPhase::kRunning, ""},
      {"SIGNALING", JobPhase::kRunning, ""},
      {"SUSPENDED", JobPhase::kSuspended, ""},
      {"STOPPED", JobPhase::kSuspended, ""},
      {"COMPLETING", JobPhase::kCompleting, ""},
      {"STAGE_OUT", JobPhase::kCompleting, ""},
      {"REQUEUED", JobPhase::kPending, ""},
      {"REQUEUE_HOLD", JobPhase::kPending, ""},
      {"SPECIAL_EXIT", JobPhase::kPending, ""},
      {"COMPLETED", JobPhase::kCompleted, ""},
      {"FAILED", JobPhase::kFailed, ""},
      {"CANCELLED", JobPhase::kCancelled, ""},
      {"CANCELLED by 1001", JobPhase::kCancelled, "1001"},
      {"CANCELLED+", JobPhase::kCancelled, ""},
      {"OUT_OF_ME+", JobPhase::kOutOfMemory, ""},
      {"TIMEOUT", JobPhase::kTimeout, ""},
      {"OUT_OF_MEMORY", JobPhase::kOutOfMemory, ""},
      {"NODE_FAIL", JobPhase::kNodeFail, ""},
      {"BOOT_FAIL", JobPhase::kBootFail, ""},
      {"PREEMPTED", JobPhase::kPreempted, ""},
      {"DEADLINE", JobPhase::kDeadline, ""},
      {"REVOKED", JobPhase::kRevoked, ""},
      {"REQUEUE_FED", JobPhase::kPending, ""},
      {"RESV_DEL_HOLD", JobPhase::kPending, ""},
      {"POWER_UP_NODE", JobPhase::kStarting, ""},
      {"LAUNCH_FAILED", JobPhase::kPending, ""},
      {"RECONFIG_FAIL", JobPhase::kPending, ""},
      {"EXPEDITING", JobPhase::kPending, ""},
      {"UPDATE_DB", JobPhase::kUnknown, ""},
  };
  for (const Case& c : cases) {
    const SlurmState state = ParseState(c.text);
    EXPECT_EQ(state.phase, c.phase) << c.text;
    EXPECT_EQ(state.cancelled_by, c.cancelled_by) << c.text;
  }
}

TEST(ParseStateTest, AWordThatIsNotKnownIsNeitherGoneNorEnded) {
  for (const std::string_view text : {"", "completed", "COMPLETE", "RE+", "+", "UPDATE_DB"}) {
    const SlurmState state = ParseState(text);
    EXPECT_EQ(state.phase, JobPhase::kUnknown) << text;
    EXPECT_FALSE(HasEnded(state.phase)) << text;
  }
}

TEST(ParseStateTest, ACompletingJobHasNotEnded) {
  EXPECT_FALSE(HasEnded(ParseState("COMPLETING").phase));
}

}  // namespace
}  // namespace muster::slurm
