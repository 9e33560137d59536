// A change that was made is answered with OK and as much as is known of it; an error means that
// nothing was changed.
#include "broker/app/change_jobs.h"

#include <gtest/gtest.h>

#include "broker/app/limits.h"
#include "broker/app/update_job.h"
#include "contract/errors.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

std::string ErrorReasonOf(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

class ChangeJobsTest : public AppTest {
 protected:
  absl::StatusOr<ChangedJobs> Change(ChangeRequest request) {
    return Await<ChangedJobs>([&](ChangeDone done) {
      ChangeJobs(alice_, services_, std::move(request), std::move(done));
    });
  }

  absl::StatusOr<ChangedJobs> CancelAll() {
    return Change({.change = JobChange::kCancel, .filter = "state = QUEUED"});
  }

  // One lot is not enough: one of its jobs has changed since, and one more comes after it.
  void SubmitTwoLots() {
    SubmitJobs(kMaxJobsPerCall + 1);
    store_.first_is_stale = true;
  }

  void ExpectFirstLot(const absl::StatusOr<ChangedJobs>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->jobs.size(), kMaxJobsPerCall - 1u);
    EXPECT_EQ(answer->matched_count, kMaxJobsPerCall + 1u);
    EXPECT_TRUE(answer->more);
    EXPECT_EQ(Read(kMaxJobsPerCall).state(), v1::JOB_STATE_CANCELED);
    EXPECT_EQ(Read(kMaxJobsPerCall + 1).state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(readers_.places, 1) << "the place is given back";
  }
};

TEST_F(ChangeJobsTest, ALotAfterTheFirstThatFindsNoReaderIsLeftToARepeat) {
  SubmitTwoLots();
  readers_.calls_left = 0;
  const auto answer = CancelAll();
  // The count has its own thread, which chooses nothing.
  EXPECT_EQ(ErrorReasonOf(answer.status()), "READERS_BUSY");
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED) << "nothing was changed";
  EXPECT_EQ(readers_.places, 1);
  readers_.calls_left = 1;
  ExpectFirstLot(CancelAll());
}

TEST_F(ChangeJobsTest, ALotAfterTheFirstThatCannotBeReadIsLeftToARepeat) {
  SubmitTwoLots();
  store_.lists_left = 1;
  ExpectFirstLot(CancelAll());
  EXPECT_FALSE(CancelAll().ok()) << "nothing was changed by that";
}

TEST_F(ChangeJobsTest, AllLotsAreChangedIfNothingIsInTheWay) {
  SubmitTwoLots();
  const auto answer = CancelAll();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->jobs.size(), static_cast<size_t>(kMaxJobsPerCall));
  EXPECT_TRUE(answer->more) << "one had changed since";
  EXPECT_EQ(Read(kMaxJobsPerCall + 1).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(ChangeJobsTest, WhoseAnswerWouldFindNoReaderIsRefusedBeforeAnythingIsDone) {
  SubmitJobs(1);
  readers_.places = 0;
  EXPECT_EQ(ErrorReasonOf(CancelAll().status()), "READERS_BUSY");
  EXPECT_EQ(ErrorReasonOf(Change({.change = JobChange::kHold, .jobs = {1}}).status()),
            "READERS_BUSY");
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED);
  EXPECT_FALSE(Read(1).held());
}

TEST_F(ChangeJobsTest, JobsThatCannotBeReadAreShownByTheirNumbers) {
  SubmitJobs(3);
  store_.get_jobs_fails = true;
  const auto by_filter = Change({.change = JobChange::kHold, .filter = "id = 2"});
  ASSERT_TRUE(by_filter.ok()) << by_filter.status();
  ASSERT_EQ(by_filter->jobs.size(), 1u);
  EXPECT_EQ(by_filter->jobs[0].id(), 2u);
  EXPECT_TRUE(Read(2).held());
  const auto by_number = Change({.change = JobChange::kRelease, .jobs = {2}});
  ASSERT_TRUE(by_number.ok()) << by_number.status();
  EXPECT_EQ(by_number->jobs[0].id(), 2u);
  EXPECT_FALSE(Read(2).held());
}

TEST_F(ChangeJobsTest, ReadersThatStopMeanwhileStillLeaveAnAnswer) {
  SubmitJobs(2);
  readers_.stopped = true;
  const auto by_filter = Change({.change = JobChange::kCancel, .filter = "id = 1"});
  ASSERT_TRUE(by_filter.ok()) << by_filter.status();
  EXPECT_EQ(by_filter->jobs[0].id(), 1u);
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_CANCELED);
  readers_.places = 1;
  const auto by_number = Change({.change = JobChange::kCancel, .jobs = {2}});
  ASSERT_TRUE(by_number.ok()) << by_number.status();
  EXPECT_EQ(Read(2).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(ChangeJobsTest, ARefusedChangeGivesItsPlaceBack) {
  EXPECT_EQ(ErrorReasonOf(Change({.change = JobChange::kCancel, .jobs = {7}}).status()),
            "UNKNOWN_JOB");
  EXPECT_EQ(readers_.places, 1);
}

TEST_F(ChangeJobsTest, WhatIsOnlyValidatedIsShownAndNotChanged) {
  SubmitJobs(2);
  for (const ChangeRequest& request : {ChangeRequest{.jobs = {1, 2}, .validate_only = true},
                                       ChangeRequest{.filter = "id > 0", .validate_only = true}}) {
    const auto answer = Change(request);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->jobs.size(), 2u);
    EXPECT_EQ(answer->matched_count, 2u);
    EXPECT_EQ(answer->jobs[0].state(), v1::JOB_STATE_QUEUED);
  }
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(ChangeJobsTest, WhoHasNoRightChangesNothing) {
  SubmitJobs(1);
  const auto answer = Await<ChangedJobs>([&](ChangeDone done) {
    ChangeJobs(stranger_, services_, {.change = JobChange::kCancel, .jobs = {1}}, std::move(done));
  });
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << answer.status();
  EXPECT_EQ(Read(1).state(), v1::JOB_STATE_QUEUED);
}

class UpdateJobTest : public AppTest {
 protected:
  absl::StatusOr<v1::UpdateJobResponse> SetPriority(int32_t priority) {
    v1::UpdateJobRequest request;
    request.set_job_id(1);
    request.set_priority(priority);
    return Await<v1::UpdateJobResponse>(
        [&](UpdateDone done) { UpdateJob(alice_, services_, request, std::move(done)); });
  }
};

TEST_F(UpdateJobTest, AnUpdateThatIsOnDiskIsAnsweredThoughNoCallMayReadAnyMore) {
  SubmitJobs(1);
  readers_.calls_left = 1;
  auto answer = SetPriority(7);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->job().priority(), 7);

  readers_.calls_left = 1;
  readers_.stopped = true;
  answer = SetPriority(8);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->job().id(), 1u);
  EXPECT_EQ(Read(1).priority(), 8);
}

TEST_F(UpdateJobTest, AnUpdateThatFindsNoReaderIsRefusedBeforeItIsDone) {
  SubmitJobs(1);
  readers_.calls_left = 0;
  EXPECT_EQ(ErrorReasonOf(SetPriority(7).status()), "READERS_BUSY");
  readers_.calls_left = 1;
  readers_.places = 0;
  EXPECT_EQ(ErrorReasonOf(SetPriority(7).status()), "READERS_BUSY");
  EXPECT_EQ(Read(1).priority(), 0);
}

TEST_F(UpdateJobTest, AnUpdateThatChangesNothingGivesItsPlaceBack) {
  SubmitJobs(1);
  EXPECT_TRUE(SetPriority(0).ok());
  EXPECT_EQ(readers_.places, 1);
}

}  // namespace
}  // namespace muster::broker
