#include "broker/app/rerun_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/app/change_jobs.h"
#include "broker/app/submit_jobs.h"
#include "contract/errors.h"
#include "contract/validate.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class RerunJobsTest : public AppTest {
 protected:
  absl::StatusOr<v1::RerunJobsResponse> Rerun(const v1::RerunJobsRequest& request) {
    return Await<v1::RerunJobsResponse>(
        [&](RerunDone done) { RerunJobs(alice_, services_, request, std::move(done)); });
  }
  static std::string ReasonOf(const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : "";
  }
  // Makes jobs that have ended, whose scripts have so many bytes.
  void EndedJobs(int count, size_t script_bytes = 1) {
    v1::SubmitJobRequest request;
    request.mutable_spec()->mutable_command()->set_script(std::string(script_bytes, '#'));
    for (int i = 0; i < count; ++i) {
      const auto submitted = Await<v1::SubmitJobResponse>(
          [&](SubmitJobDone done) { SubmitJob(alice_, services_, request, std::move(done)); });
      ASSERT_TRUE(submitted.ok()) << submitted.status();
      const auto canceled = Await<ChangedJobs>([&](ChangeDone done) {
        ChangeJobs(alice_, services_, {.change = JobChange::kCancel, .jobs = {submitted->job_id()}},
                   std::move(done));
      });
      ASSERT_TRUE(canceled.ok()) << canceled.status();
    }
  }
  // Makes jobs that have ended, each with a tree of its own. The files are not here.
  void EndedJobsWithTrees(int count) {
    core::Submit submit;
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      v1::JobSpec spec;
      spec.mutable_command()->set_script("true");
      spec.add_uploads()->set_tree_sha256(fmt::format("{:064x}", i));
      const auto normal = contract::NormalizeJobSpec(std::move(spec));
      ASSERT_TRUE(normal.ok()) << normal.status();
      submit.items.emplace_back().spec = std::make_shared<const v1::JobSpec>(*normal);
      ids.push_back(static_cast<uint64_t>(i) + 1);
    }
    submit.user = "alice";
    const auto submitted = Await<v1::SubmitJobsResponse>(
        [&](SubmitDone done) { engine_->Submit(std::move(submit), std::move(done)); });
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    const auto canceled = Await<ChangedJobs>([&](ChangeDone done) {
      ChangeJobs(alice_, services_, {.change = JobChange::kCancel, .jobs = ids}, std::move(done));
    });
    ASSERT_TRUE(canceled.ok()) << canceled.status();
  }
  static v1::RerunJobsRequest Canceled() {
    v1::RerunJobsRequest request;
    request.set_filter("state = CANCELED");
    return request;
  }
};

TEST_F(RerunJobsTest, ATrialCountsJobsWhoseSpecsAreTogetherTooLargeForOneCall) {
  constexpr int kJobs = 40;
  EndedJobs(kJobs, size_t{500} << 10);
  v1::RerunJobsRequest request = Canceled();
  EXPECT_EQ(ReasonOf(Rerun(request).status()), "TOO_MANY_JOBS");
  request.set_validate_only(true);
  const auto trial = Rerun(request);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_THAT(trial->jobs(), SizeIs(kJobs));
  EXPECT_EQ(trial->jobs(kJobs - 1).source_job_id(), static_cast<uint64_t>(kJobs));
  EXPECT_EQ(trial->matched_count(), static_cast<uint32_t>(kJobs));
  EXPECT_TRUE(trial->more());
  // A trial by number has the error of the request itself.
  request.clear_filter();
  for (uint64_t id = 1; id <= kJobs; ++id) request.add_job_ids(id);
  EXPECT_EQ(ReasonOf(Rerun(request).status()), "TOO_MANY_JOBS");
}

TEST_F(RerunJobsTest, ATrialCountsJobsWithMoreTreesThanOneCallMayHave) {
  constexpr int kJobs = 150;
  EndedJobsWithTrees(kJobs);
  v1::RerunJobsRequest request = Canceled();
  EXPECT_EQ(ReasonOf(Rerun(request).status()), "TOO_MANY_JOBS");
  request.set_validate_only(true);
  const auto trial = Rerun(request);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_THAT(trial->jobs(), SizeIs(kJobs));
  EXPECT_EQ(trial->jobs(kJobs - 1).source_job_id(), static_cast<uint64_t>(kJobs));
  EXPECT_TRUE(trial->more());
  request.set_filter("state = CANCELED AND id <= 64");
  EXPECT_FALSE(Rerun(request)->more());
  // A trial by number has the error of the request itself.
  request.clear_filter();
  for (uint64_t id = 1; id <= kJobs; ++id) request.add_job_ids(id);
  EXPECT_EQ(ReasonOf(Rerun(request).status()), "TOO_MANY_JOBS");
}

TEST_F(RerunJobsTest, ATrialWhoseJobsAreDeletedWhileTheyAreCountedSaysHowManyWereCounted) {
  EndedJobs(2);
  v1::RerunJobsRequest request = Canceled();
  request.set_validate_only(true);
  store_.before_list = [this] {
    ASSERT_TRUE(store_.Commit({core::DeleteJob{1}, core::DeleteJob{2}}).ok());
  };
  const auto trial = Rerun(request);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_THAT(trial->jobs(), IsEmpty());
  EXPECT_EQ(trial->matched_count(), 2u);
}

TEST_F(RerunJobsTest, ARepeatIsAnsweredWithoutALookAtSpecsAndFiles) {
  EndedJobs(1);
  v1::RerunJobsRequest request = Canceled();
  request.set_request_id("once");
  const auto first = Rerun(request);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Read(2).rerun_of(), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_.GetJob(store::Scope::All(), 3).status())) << "only once";
  store_.spec_reads = 0;
  store_.lists_left = 0;
  counters_.calls_left = 0;
  file_workers_.calls_left = 0;
  for (const bool is_trial : {false, true}) {
    request.set_validate_only(is_trial);
    const auto repeat = Rerun(request);
    ASSERT_TRUE(repeat.ok()) << repeat.status();
    EXPECT_EQ(repeat->SerializeAsString(), first->SerializeAsString());
  }
  EXPECT_EQ(store_.spec_reads, 0);
}

TEST_F(RerunJobsTest, ARepeatIsAnsweredAlsoWhenItsJobsAreGone) {
  EndedJobs(1);
  v1::RerunJobsRequest request;
  request.add_job_ids(1);
  request.set_request_id("once");
  const auto first = Rerun(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(store_.Commit({core::DeleteJob{1}}).ok());
  const auto repeat = Rerun(request);
  ASSERT_TRUE(repeat.ok()) << repeat.status();
  EXPECT_EQ(repeat->SerializeAsString(), first->SerializeAsString());
  request.set_request_id("twice");
  EXPECT_EQ(ReasonOf(Rerun(request).status()), "JOB_DELETED");
}

}  // namespace
}  // namespace muster::broker
