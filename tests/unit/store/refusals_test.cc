// Tests that each store finds again which clusters have refused runs of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "contract/failures.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using RefusalsTest = StoreTest;

INSTANTIATE_TEST_SUITE_P(Stores, RefusalsTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

// A run that has failed on the cluster for this cause, a minute after the one before.
core::Change Failed(uint32_t number, const std::string& cluster, v1::FailureCode code) {
  core::Change change = RunOf(1, number, v1::RUN_STATE_FAILED);
  v1::Run& run = std::get<core::PutRun>(change).run;
  run.set_cluster(cluster);
  run.mutable_end_time()->set_seconds(absl::ToUnixSeconds(kStart) + 60 * number);
  *run.mutable_failure() = contract::MakeFailure(code, v1::FAILURE_CLASS_CONFIG, {});
  return change;
}

core::UpdateJob QueuedAfter(uint32_t runs) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_QUEUED;
  update.job_sequence = 2 + runs;
  update.runs = runs;
  update.cluster = "box";  // that of the latest run
  return update;
}

TEST_P(RefusalsTest, AreThoseOfTheJobsRuns) {
  Commit({Insert(1), Step(1, 1, 1), Failed(1, "slurm", v1::FAILURE_CODE_LAUNCH_REFUSED),
          Failed(2, "kube", v1::FAILURE_CODE_LAUNCH_REFUSED),
          Failed(3, "slurm", v1::FAILURE_CODE_LAUNCH_REFUSED),
          Failed(4, "box", v1::FAILURE_CODE_COMMAND_FAILED), QueuedAfter(4),
          core::PutWithdrawal{.job = 1, .returned_runs = 3}});
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(1));
  const absl::Time slurm_until = kStart + absl::Minutes(3) + 2 * contract::kAskedAgain;
  const absl::Time kube_until = kStart + absl::Minutes(2) + contract::kAskedAgain;
  EXPECT_THAT(
      restored.jobs[0].refusals,
      ElementsAre(
          contract::RefusingCluster{
              .cluster = "slurm", .run = 3, .times = 2, .passes = false, .until = slurm_until},
          contract::RefusingCluster{
              .cluster = "kube", .run = 2, .times = 1, .passes = false, .until = kube_until}));
}

TEST_P(RefusalsTest, AJobWhoseRunsAllBeganHasNone) {
  Commit({Insert(1), Step(1, 1, 1), Failed(1, "box", v1::FAILURE_CODE_COMMAND_FAILED),
          QueuedAfter(1)});
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(1));
  EXPECT_THAT(restored.jobs[0].refusals, IsEmpty());
}

}  // namespace
}  // namespace muster::store
