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

RunFacts WithLeaseRecord(ExitRecord::Cause cause) {
  RunFacts facts;
  facts.record.emplace();
  facts.record->phase = "command";
  facts.record->problem = ExitRecord::Problem::kLease;
  facts.record->cause = cause;
  facts.record->code = 143;
  return facts;
}

TEST(ExplainLeaseTest, TheEndOfALeaseIsTheClustersFaultAndWorthAnotherRun) {
  const v1::Failure ran =
      ExplainEnd(JobPhase::kFailed, "FAILED", WithLeaseRecord(ExitRecord::Cause::kNone));
  EXPECT_EQ(ran.code(), v1::FAILURE_CODE_LEASE_ENDED);
  EXPECT_EQ(ran.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(ran.retriable());
  EXPECT_EQ(ran.phase(), v1::FAILURE_PHASE_COMMAND);
  EXPECT_FALSE(ran.has_exit()) << "the program did not end by itself";
  const v1::Failure early =
      ExplainEnd(JobPhase::kFailed, "FAILED", WithLeaseRecord(ExitRecord::Cause::kNotStarted));
  EXPECT_EQ(early.code(), v1::FAILURE_CODE_LEASE_ENDED);
  EXPECT_EQ(early.phase(), v1::FAILURE_PHASE_COMMAND_START);
  EXPECT_NE(early.message(), ran.message());
}

TEST(ExplainLeaseTest, ABatchScriptThatGotSeveralNodesIsToBeCorrected) {
  const v1::Failure failure =
      ExplainEnd(JobPhase::kFailed, "FAILED", WithLeaseRecord(ExitRecord::Cause::kNodes));
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(failure.retriable());
  EXPECT_NE(failure.remedy().find("--nodes=1"), std::string::npos);
}

}  // namespace
}  // namespace muster::slurm
