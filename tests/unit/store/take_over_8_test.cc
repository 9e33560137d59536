// A database of version 8, opened by this release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_8.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Version8Test : public TakeOverTest {
 protected:
  std::vector<JobTransition> StepsOf(uint64_t job) {
    auto steps = store_->ListTransitions(Scope::All(), {job}, 0, 100);
    EXPECT_TRUE(steps.ok()) << steps.status();
    return *std::move(steps);
  }
};

TEST_F(Version8Test, KeepsItsJobsAndRestoresWhatHasNotEnded) {
  Take(kVersion8Dump);
  EXPECT_EQ(Get(1).priority(), 7);
  EXPECT_EQ(Get(1).labels().at("team"), "speech");
  EXPECT_EQ(Get(3).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Get(4).exit().code(), 3);
  EXPECT_EQ(Get(6).state(), v1::JOB_STATE_CANCELED);
  const core::Restored restored = Restore(absl::Now());
  std::vector<uint64_t> ids;
  for (const core::LiveJob& job : restored.jobs) ids.push_back(job.id);
  EXPECT_THAT(ids, ElementsAre(1, 2, 5));
  EXPECT_EQ(restored.next_job_id, 7u);
  EXPECT_EQ(restored.next_sequence, *store_->LastSequence() + 1);
  core::Core core({}, restored);
  EXPECT_TRUE(core.CheckInvariants().ok()) << core.CheckInvariants();
}

TEST_F(Version8Test, GetsARoomForWhatProjectsHaveUsed) {
  Take(kVersion8Dump);
  EXPECT_EQ(Count("share_use"), 0);
  ASSERT_TRUE(store_
                  ->Commit(std::vector<core::Change>{
                      core::PutUse{"vision", "ada", {1, 2, 3}, absl::UnixEpoch()}})
                  .ok());
  EXPECT_EQ(Count("share_use WHERE project = 'vision' AND gpu = 3"), 1);
}

TEST_F(Version8Test, TakesTheExitCodeFromAJobThatASignalEnded) {
  v1::Run run;
  run.set_number(1);
  run.mutable_exit()->set_signal(9);
  Take(std::string(kVersion8Dump) +
       "UPDATE job SET exit_code = 0 WHERE id = 4; UPDATE run SET run = X'" +
       absl::BytesToHexString(run.SerializeAsString()) + "' WHERE id = 4 * 65536 + 1");
  EXPECT_EQ(Get(4).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Count("job WHERE id = 4 AND exit_code IS NULL"), 1);
  EXPECT_EQ(Count("job WHERE id = 3 AND exit_code = 0"), 1);
}

TEST_F(Version8Test, KeepsTheRequestsOfItsJobs) {
  Take(kVersion8Dump);
  EXPECT_EQ(Count("sqlite_schema WHERE name = 'request'"), 0);
  std::map<uint64_t, std::pair<std::string, core::Fingerprint>> requests;
  for (const auto& request : Restore(absl::UnixEpoch()).requests) {
    requests[request.job] = {request.request_id, request.fingerprint};
  }
  EXPECT_EQ(requests.size(), 6u);
  EXPECT_EQ(requests[1], std::pair(std::string("first"), core::Fingerprint{3199183296573978862}));
  EXPECT_EQ(requests[6].first, "3ee0741b-6973-4dda-b169-066732cff16f");
}

TEST_F(Version8Test, MovesMoreRequestsThanOneTransactionTakes) {
  Take(
      std::string(kVersion8Dump) +
      "WITH RECURSIVE n(i) AS (SELECT 7 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)"
      "INSERT INTO request SELECT i, 'r' || i, i FROM n;"
      "INSERT INTO job (id, state, job_sequence, cancel_requested, runs, cluster, spec, priority,"
      " create_time, name, project, user)"
      " SELECT job, 1, 1, 0, 0, '', 1, 0, 0, 'more', 'default', 'root' FROM request WHERE job > 6");
  EXPECT_EQ(Count("job WHERE id > 6 AND request_id = 'r' || id AND fingerprint = id"), 11'994);
}

TEST_F(Version8Test, GoesOnWhereTheMoveOfRequestsStopped) {
  Take(kVersion8Dump);
  store_.reset();
  // A process that ended after some of the transactions left it like this.
  Execute(
      "DROP TABLE share_use; DROP TABLE day_usage; ALTER TABLE cluster DROP COLUMN cordon;"
      "ALTER TABLE job DROP COLUMN fail_overs; ALTER TABLE cluster DROP COLUMN fence_delay;"
      "ALTER TABLE cluster DROP COLUMN lease;"
      "CREATE TABLE request (job INTEGER PRIMARY KEY, request_id TEXT NOT NULL,"
      " fingerprint INTEGER NOT NULL) STRICT;"
      "INSERT INTO request SELECT id, request_id, fingerprint FROM job WHERE id > 3;"
      "UPDATE job SET request_id = NULL, fingerprint = NULL WHERE id > 3;"
      "ALTER TABLE job DROP COLUMN withdrawal; ALTER TABLE job DROP COLUMN returned_runs;"
      "ALTER TABLE job DROP COLUMN failed_dependency; PRAGMA user_version = 10");
  Open();
  EXPECT_EQ(Count("job WHERE request_id IS NOT NULL AND fingerprint IS NOT NULL"), 6);
  EXPECT_EQ(Count("sqlite_schema WHERE name = 'request'"), 0);
}

TEST_F(Version8Test, ASpecThatCameAndWentInOneCommitLeavesNothing) {
  Take(kVersion8Dump);
  ASSERT_TRUE(
      store_->Commit(std::vector<core::Change>{Insert(7, {.script_bytes = 77}), core::DeleteJob{7}})
          .ok());
  EXPECT_EQ(Count("spec"), 4);
  EXPECT_EQ(Count("spec_use"), 4);
}

TEST_F(Version8Test, ASpecGoesWithTheLastOfItsJobs) {
  Take(kVersion8Dump);
  EXPECT_EQ(Count("spec"), 4);
  EXPECT_EQ(Count("spec_use u WHERE jobs = (SELECT count(*) FROM job WHERE spec = u.spec)"), 4);
  ASSERT_TRUE(store_->Commit(std::vector<core::Change>{core::DeleteJob{2}}).ok());
  EXPECT_EQ(Count("spec"), 4) << "jobs 3 and 6 have it, too";
  ASSERT_TRUE(
      store_->Commit(std::vector<core::Change>{core::DeleteJob{3}, core::DeleteJob{6}}).ok());
  EXPECT_EQ(Count("spec"), 3);
  EXPECT_EQ(Count("spec_use"), 3);
}

TEST_F(Version8Test, EarlierUpdatesCountAsIfTheyHadChangedNothing) {
  Take(kVersion8Dump);
  for (const JobTransition& step : StepsOf(1)) {
    EXPECT_FALSE(step.edited.has_value());
    EXPECT_FALSE(step.edited_later.has_value());
  }
}

TEST_F(Version8Test, UpdatesAndChangesOfRunsAreKeptFromNowOn) {
  Take(kVersion8Dump);
  const uint64_t last = *store_->LastSequence();
  EXPECT_THAT(*store_->ListRunChanges(Scope::All(), {}, 0, 100), IsEmpty());
  core::EditJob edit;
  edit.id = 1;
  edit.job_sequence = 3;
  edit.sequence = last + 1;
  edit.priority = 9;
  edit.priority_before = 7;
  core::PutRun run;
  run.job = 5;
  run.run = Get(5).runs(0);
  run.sequence = last + 2;
  ASSERT_TRUE(store_->Commit(std::vector<core::Change>{edit, Step(1, last + 1, 3), run}).ok());
  const std::vector<JobTransition> steps = StepsOf(1);
  EXPECT_EQ(steps.front().edited_later->priority, 7);
  EXPECT_EQ(steps.back().edited->priority, 7);
  EXPECT_EQ(store_->ListRunChanges(Scope::All(), {}, 0, 100)->front().sequence, last + 2);
}

}  // namespace
}  // namespace muster::store
