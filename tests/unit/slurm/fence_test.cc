// Tests runs that would neither begin nor end by Slurm's doing.
#include "agents/slurm/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

constexpr Patience kPatience{absl::Seconds(30), absl::Seconds(60)};
constexpr char kLaunchFailed[] = "launch failed requeued held";

// Makes the facts of Slurm job 17, about which squeue and sacct have answered.
RunFacts MakeFacts() {
  RunFacts facts;
  facts.run_key = "k7m2-42-1";
  facts.job_id = {17};
  facts.now = absl::FromUnixSeconds(1000);
  facts.queue_answered = true;
  facts.history_answer = RunFacts::History::kAnswered;
  return facts;
}

RunFacts InQueue(std::string_view state, std::string reason) {
  RunFacts facts = MakeFacts();
  facts.queue = QueueRow{};
  facts.queue->job_id = {17};
  facts.queue->state = ParseState(state);
  facts.queue->reason = std::move(reason);
  return facts;
}

TEST(FenceTest, AForgottenRunThatCannotBeginAnyMoreMayBeTriedAgain) {
  RunFacts facts = MakeFacts();
  facts.missing_for = kPatience.absence_grace;
  const auto lost = Judge(facts, kPatience);
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->state, v1::RUN_STATE_LOST);
  EXPECT_FALSE(lost->failure->retriable()) << "it may still run";

  facts.is_fenced = true;
  const auto fenced = Judge(facts, kPatience);
  ASSERT_TRUE(fenced.has_value());
  EXPECT_EQ(fenced->state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(fenced->failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(fenced->failure->retriable());
}

TEST(FenceTest, AJobThatSlurmCouldNotStartIsTheClustersFaultOnceItHasBeenCanceled) {
  EXPECT_TRUE(IsLaunchFailed(InQueue("PENDING", kLaunchFailed)));
  EXPECT_FALSE(IsLaunchFailed(InQueue("PENDING", "Resources")));
  EXPECT_EQ(Judge(InQueue("PENDING", kLaunchFailed), kPatience)->state, v1::RUN_STATE_PENDING);
  const auto seen = Judge(InQueue("CANCELLED", kLaunchFailed), kPatience);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen->failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_TRUE(seen->failure->retriable());
  EXPECT_THAT(seen->failure->message(), HasSubstr(kLaunchFailed));
}

TEST(FenceTest, AJobThatSlurmCouldNotStartAndThatTheUserCanceledIsCanceled) {
  RunFacts facts = InQueue("CANCELLED", kLaunchFailed);
  facts.cancel_asked = true;
  EXPECT_EQ(Judge(facts, kPatience)->state, v1::RUN_STATE_CANCELED);
}

}  // namespace
}  // namespace muster::slurm
