// Stores keep the jobs that another one depends on, and the one that let it fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/filter.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DependenciesTest : public StoreTest {
 protected:
  static core::Change InsertAfter(uint64_t id, std::initializer_list<uint64_t> others) {
    core::Change change = Insert(id);
    auto& insert = std::get<core::InsertJob>(change);
    v1::JobSpec spec = *insert.spec;
    for (const uint64_t other : others) {
      spec.add_depends_on()->set_job_id(other);
      spec.mutable_depends_on()->rbegin()->set_outcome(v1::JOB_OUTCOME_ENDED);
    }
    insert.spec = std::make_shared<const v1::JobSpec>(std::move(spec));
    return change;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, DependenciesTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(DependenciesTest, AWaitingJobIsRestoredWithWhatItWaitsForAndHowThatEnded) {
  Commit({Insert(1), Step(1, 10, 1)});
  Commit(Finished(1, kStart));
  Commit({Insert(2), Step(2, 11, 1), InsertAfter(3, {1, 2, 99}), Step(3, 12, 1),
          InsertAfter(4, {1, 2, 99}), Step(4, 13, 1)});
  Commit({Update(4, v1::JOB_STATE_PENDING, 2, "a"), RunOf(4, 1, v1::RUN_STATE_ASSIGNED),
          Step(4, 14, 2)});
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(3));
  EXPECT_THAT(restored.jobs[0].depends_on, IsEmpty());
  const std::vector<core::LiveJob::Dependency>& waits = restored.jobs[1].depends_on;
  ASSERT_THAT(waits, SizeIs(3));
  EXPECT_EQ(waits[0].job, 1u);
  EXPECT_EQ(waits[0].outcome, v1::JOB_OUTCOME_ENDED);
  EXPECT_EQ(waits[0].end, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(waits[1].job, 2u);
  EXPECT_EQ(waits[1].end, std::nullopt) << "it has not ended";
  EXPECT_EQ(waits[2].end, std::nullopt) << "it was deleted";
  EXPECT_THAT(restored.jobs[2].depends_on, IsEmpty()) << "it has had a run";
}

TEST_P(DependenciesTest, AJobThatNeverRanKeepsTheNumberOfTheOneThatFailedIt) {
  Commit({Insert(1), Step(1, 1, 1)});
  core::Change change = Update(1, v1::JOB_STATE_FAILED, 2);
  auto& update = std::get<core::UpdateJob>(change);
  update.failed_dependency = 41;
  update.end_time = kStart;
  Commit({change, Step(1, 2, 2)});
  Reopen();
  const auto job = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->failure().code(), v1::FAILURE_CODE_DEPENDENCY_FAILED);
  EXPECT_EQ(job->failure().failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(job->failure().subject(), "41");
  EXPECT_FALSE(job->failure().remedy().empty());
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().failure().subject(), "41");
  EXPECT_THAT(List("failure_class = CONFIG"), ElementsAre(1));
}

TEST_P(DependenciesTest, TheStatesOfJobsAreReadWhateverTheScope) {
  Commit({Insert(1), Step(1, 10, 1)});
  Commit(Finished(1, kStart));
  Commit({Insert(2), Step(2, 11, 1)});
  EXPECT_THAT(
      *store().GetStates({2, 99, 1}),
      ElementsAre(v1::JOB_STATE_QUEUED, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_SUCCEEDED));
}

}  // namespace
}  // namespace muster::store
