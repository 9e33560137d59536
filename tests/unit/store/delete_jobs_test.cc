// The end of jobs that are kept no longer, in every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeleteJobsTest : public StoreTest {
 protected:
  // Commits a job that has ended, with a step for each of its states.
  void CommitEnded(uint64_t id, absl::Time end, const JobOptions& options = {}) {
    std::vector<core::Change> changes = {Insert(id, options)};
    for (core::Change& change : Finished(id, end)) changes.push_back(std::move(change));
    for (uint64_t step = 1; step <= 3; ++step) changes.push_back(Step(id, ++sequence_, step));
    Commit(std::move(changes));
  }
  std::vector<uint64_t> Ended(absl::Time before, int max_rows = 1000) {
    const auto jobs = store().ListEnded(before, max_rows);
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    return jobs.ok() ? *jobs : std::vector<uint64_t>();
  }
  std::string ReasonOfGet(uint64_t id) {
    const auto info = contract::GetErrorInfo(store().GetJob(Scope::All(), id).status());
    return info ? info->reason() : "";
  }

  uint64_t sequence_ = 0;
};

TEST_P(DeleteJobsTest, ThoseThatEndedFirstAreTheFirstToGo) {
  CommitEnded(1, kStart + absl::Hours(3));
  CommitEnded(2, kStart + absl::Hours(1));
  CommitEnded(3, kStart + absl::Hours(2));
  Commit({Insert(4)});
  EXPECT_THAT(Ended(kStart + absl::Hours(4)), ElementsAre(2, 3, 1));
  EXPECT_THAT(Ended(kStart + absl::Hours(2)), ElementsAre(2));
  EXPECT_THAT(Ended(kStart + absl::Hours(1)), IsEmpty());
}

TEST_P(DeleteJobsTest, ASliceHasABoundedNumberOfRows) {
  for (uint64_t id = 1; id <= 10; ++id) CommitEnded(id, kStart);
  EXPECT_THAT(Ended(kStart + absl::Hours(1), 21), SizeIs(3)) << "of 7 rows each";
  EXPECT_THAT(Ended(kStart + absl::Hours(1), 1), SizeIs(1)) << "one however large it is";
}

TEST_P(DeleteJobsTest, WhatWasEditedCountsAmongTheRows) {
  for (uint64_t id = 1; id <= 2; ++id) {
    CommitEnded(id, kStart);
    for (uint64_t step = 4; step <= 13; ++step) {
      core::EditJob edit;
      edit.id = id;
      edit.job_sequence = step;
      edit.sequence = sequence_ + 1;
      Commit({edit, Step(id, ++sequence_, step)});
    }
  }
  EXPECT_THAT(Ended(kStart + absl::Hours(1), 2 * 27), SizeIs(2)) << "17 rows and 10 edits each";
  EXPECT_THAT(Ended(kStart + absl::Hours(1), 2 * 27 - 1), SizeIs(1));
}

TEST_P(DeleteJobsTest, OneWhoseLogsMayStillComeStays) {
  CommitEnded(1, kStart);
  Commit({RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, false)});
  EXPECT_THAT(Ended(kStart + absl::Hours(1)), IsEmpty());
  Commit({RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, true)});
  EXPECT_THAT(Ended(kStart + absl::Hours(1)), ElementsAre(1));
}

TEST_P(DeleteJobsTest, NothingIsLeftOfADeletedJob) {
  CommitEnded(1, kStart, {.labels = {{"team", "vision"}}, .request_id = "r1"});
  CommitEnded(2, kStart, {.labels = {{"team", "vision"}}, .request_id = "r2"});
  Commit({core::DeleteJob{1}});
  Reopen();
  EXPECT_EQ(ReasonOfGet(1), "JOB_DELETED");
  EXPECT_THAT(List("label.team = vision"), ElementsAre(2));
  EXPECT_THAT(List("cluster = here"), ElementsAre(2));
  EXPECT_THAT(List(""), ElementsAre(2));
  EXPECT_THAT(*store().ListTransitions(Scope::All(), {}, 0, 100), SizeIs(3));
  EXPECT_THAT(*store().ListTransitions(Scope::All(), {1}, 0, 100), IsEmpty());
  EXPECT_EQ(store().GetSpecs(Scope::All(), {1}).status().code(), absl::StatusCode::kNotFound);
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.requests, SizeIs(1));
  EXPECT_EQ(restored.requests[0].request_id, "r2");
  EXPECT_EQ(store().GetJob(Scope::All(), 2)->runs_size(), 1);
}

TEST_P(DeleteJobsTest, AStepOfTheSameCommitGoesWithItsJob) {
  CommitEnded(1, kStart);
  Commit({Step(1, ++sequence_, 4), core::DeleteJob{1}});
  Reopen();
  EXPECT_THAT(*store().ListTransitions(Scope::All(), {}, 0, 100), IsEmpty());
  EXPECT_EQ(*store().LastSequence(), sequence_);
}

TEST_P(DeleteJobsTest, NumbersAreNeverUsedAgain) {
  CommitEnded(1, kStart);
  CommitEnded(2, kStart);
  Commit({core::DeleteJob{1}, core::DeleteJob{2}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Restore().next_job_id, 3u);
    EXPECT_EQ(Restore().next_sequence, 7u);
    EXPECT_EQ(*store().LastSequence(), 6u);
    EXPECT_EQ(ReasonOfGet(2), "JOB_DELETED");
    EXPECT_EQ(ReasonOfGet(3), "UNKNOWN_JOB");
    EXPECT_EQ(ReasonOfGet(0), "UNKNOWN_JOB");
    Reopen();
  }
  Commit({Insert(3), Step(3, 7, 1)});
  EXPECT_EQ(Restore().next_job_id, 4u);
  EXPECT_EQ(*store().LastSequence(), 7u);
}

TEST_P(DeleteJobsTest, APageTokenOutlivesTheJobThatItNames) {
  for (uint64_t id = 1; id <= 6; ++id) CommitEnded(id, kStart);
  ListQuery query{.page_size = 2};
  auto page = store().ListJobs(Scope::All(), query);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->jobs.back().id(), 5u);
  Commit({core::DeleteJob{5}, core::DeleteJob{4}});
  query.page_token = page->next_page_token;
  page = store().ListJobs(Scope::All(), query);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(page->jobs, SizeIs(2));
  EXPECT_EQ(page->jobs[0].id(), 3u);
  EXPECT_EQ(page->jobs[1].id(), 2u);
}

TEST_P(DeleteJobsTest, ListsByTimeFindTheRestOfABlock) {
  for (uint64_t id = 1022; id <= 1026; ++id) CommitEnded(id, kStart);
  Commit({core::DeleteJob{1022}, core::DeleteJob{1023}, core::DeleteJob{1024}, Insert(1027)});
  EXPECT_THAT(List("create_time >= \"2025-01-01T00:00:00Z\""), ElementsAre(1027, 1026, 1025));
}

TEST_P(DeleteJobsTest, AClusterGoes) {
  core::PutCluster cluster;
  cluster.name = "here";
  Commit({cluster});
  Commit({core::RemoveCluster{"here"}, core::RemoveCluster{"never there"}});
  Reopen();
  EXPECT_THAT(Restore().clusters, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Stores, DeleteJobsTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

}  // namespace
}  // namespace muster::store
