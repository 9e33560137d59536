// Tests how a job shows its latest run; every store shows the same.
#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

class JobViewTest : public StoreTest {};

INSTANTIATE_TEST_SUITE_P(Stores, JobViewTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(JobViewTest, AJobWhoseRunHasNoReasonSaysHowFarItIsUntilItRuns) {
  core::UpdateJob update = std::get<core::UpdateJob>(Update(1, v1::JOB_STATE_PENDING, 1, "here"));
  const auto shown = [this] {
    const v1::StateReason reason = store().GetJob(Scope::All(), 1)->state_reason();
    EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
              reason.message());
    return reason;
  };
  Commit({Insert(1), RunOf(1, 1, v1::RUN_STATE_STARTING), update});
  EXPECT_EQ(shown().code(), v1::STATE_REASON_CODE_STARTING);
  EXPECT_EQ(shown().message(), "its cluster is starting it");
  update.hold = core::HoldState::kHeld;
  Commit({update});
  EXPECT_EQ(shown().message(), "asked to hold; its cluster is starting it");
  update.hold = core::HoldState::kNone;
  update.cancel_requested = true;
  Commit({update});
  EXPECT_EQ(shown().message(), "cancel requested; its cluster is starting it");
  update.state = v1::JOB_STATE_RUNNING;
  Commit({RunOf(1, 1, v1::RUN_STATE_RUNNING), update});
  EXPECT_EQ(shown().code(), v1::STATE_REASON_CODE_CANCELING);
  EXPECT_EQ(shown().message(), "cancel requested");
  update.cancel_requested = false;
  Commit({update});
  EXPECT_EQ(shown().message(), "") << "it runs";
}

TEST_P(JobViewTest, AJobThatTimedOutNamesItsLimitWhereItsSpecIsShown) {
  v1::JobSpec spec;
  spec.mutable_time_limit()->set_seconds(5400);
  core::Change insert = Insert(1);
  std::get<core::InsertJob>(insert).spec = std::make_shared<const v1::JobSpec>(spec);
  core::Change failed = RunOf(1, 1, v1::RUN_STATE_FAILED, true);
  v1::Failure& failure = *std::get<core::PutRun>(failed).run.mutable_failure();
  failure.set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  failure.set_message("stopped");
  Commit({insert, failed, Update(1, v1::JOB_STATE_FAILED, 1, "here")});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->failure().message(), "stopped (the job's is 1h30m)");
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().failure().message(), "stopped");
}

}  // namespace
}  // namespace muster::store
