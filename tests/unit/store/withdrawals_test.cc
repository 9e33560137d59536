// Tests that each store keeps which runs are to come back, and how many came back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_8.h"

namespace muster::store {
namespace {

using ::testing::SizeIs;

using WithdrawalsTest = StoreTest;

INSTANTIATE_TEST_SUITE_P(Stores, WithdrawalsTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(WithdrawalsTest, ComeBackWithWhatTheySayAndGoWithTheirEnd) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_PENDING;
  update.job_sequence = 3;
  update.runs = 1;
  update.cluster = "here";
  core::PutWithdrawal begins{.job = 1, .withdrawal = v1::Withdrawal(), .returned_runs = 2};
  begins.withdrawal->set_cause(v1::WITHDRAWAL_CAUSE_DRAIN);
  begins.withdrawal->set_user("ann");
  Commit({Insert(1), Step(1, 1, 1), begins, RunOf(1, 1, v1::RUN_STATE_PENDING), update});
  Reopen();
  const auto job = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->withdrawal().cause(), v1::WITHDRAWAL_CAUSE_DRAIN);
  EXPECT_EQ(job->withdrawal().user(), "ann");
  EXPECT_EQ(job->state_reason().code(), v1::STATE_REASON_CODE_WITHDRAWING);
  ASSERT_THAT(Restore().jobs, SizeIs(1));
  ASSERT_TRUE(Restore().jobs[0].withdrawal.has_value());
  EXPECT_EQ(Restore().jobs[0].withdrawal->user(), "ann");
  EXPECT_EQ(Restore().jobs[0].returned_runs, 2u);

  Commit({core::PutWithdrawal{.job = 1, .returned_runs = 3}});
  Reopen();
  EXPECT_FALSE(store().GetJob(Scope::All(), 1)->has_withdrawal());
  EXPECT_FALSE(Restore().jobs[0].withdrawal.has_value());
  EXPECT_EQ(Restore().jobs[0].returned_runs, 3u);
}

using Version8WithdrawalsTest = TakeOverTest;

TEST_F(Version8WithdrawalsTest, JobsOfAnOlderFileHaveNone) {
  Take(kVersion8Dump);
  const core::Restored restored = Restore(absl::Now());
  ASSERT_FALSE(restored.jobs.empty());
  for (const core::LiveJob& job : restored.jobs) {
    EXPECT_FALSE(job.withdrawal.has_value());
    EXPECT_EQ(job.returned_runs, 0u);
  }
}

}  // namespace
}  // namespace muster::store
