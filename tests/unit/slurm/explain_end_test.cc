#include "agents/slurm/explain_end.h"

#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

constexpr char kTimeLimitOutput[] =
    "slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT 2026-11-21T03:00:00 DUE TO TIME LIMIT "
    "***\n";

TEST(SinceLastStartTest, DropsWhatSlurmSaidOfEarlierStarts) {
  const std::string preempted =
      "slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT 2026-11-21T03:00:00 DUE TO PREEMPTION "
      "***\n";
  const std::string again = "muster-start job=17 restart=1\n";
  EXPECT_EQ(PhaseInOutput(preempted), JobPhase::kPreempted);
  EXPECT_EQ(SinceLastStart(preempted), preempted);
  EXPECT_EQ(SinceLastStart(preempted + again), again);
  EXPECT_EQ(SinceLastStart(preempted + again + kTimeLimitOutput), again + kTimeLimitOutput);
  EXPECT_EQ(SinceLastStart(""), "");
}

TEST(PhaseInOutputTest, ReadsSlurmstepdsLastWordsAndNobodyElses) {
  const std::string begin =
      "slurmstepd-n1: error: *** JOB 17 ON n1 CANCELLED AT 2026-11-21T03:00:00";
  EXPECT_EQ(PhaseInOutput(begin + " DUE TO TIME LIMIT ***\n"), JobPhase::kTimeout);
  EXPECT_EQ(PhaseInOutput(begin + " DUE TO PREEMPTION ***\n"), JobPhase::kPreempted);
  EXPECT_EQ(PhaseInOutput(begin + " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"),
            JobPhase::kNodeFail);
  EXPECT_EQ(PhaseInOutput(begin + " ***\n"), JobPhase::kCancelled);
  EXPECT_EQ(PhaseInOutput(begin + " ***\n" + begin + " DUE TO JOB REQUEUE ***\n"),
            JobPhase::kUnknown);
  EXPECT_EQ(PhaseInOutput("echo: JOB 17 CANCELLED AT noon DUE TO TIME LIMIT\n"),
            JobPhase::kUnknown);
  EXPECT_EQ(PhaseInOutput(""), JobPhase::kUnknown);
}

}  // namespace
}  // namespace muster::slurm
