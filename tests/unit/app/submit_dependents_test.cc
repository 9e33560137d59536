#include "broker/app/submit_dependents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/app/change_jobs.h"
#include "broker/app/get_job.h"
#include "broker/app/rerun_jobs.h"
#include "broker/app/submit_jobs.h"
#include "broker/engine/assignment_messages.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

class SubmitDependentsTest : public AppTest {
 protected:
  static v1::SubmitJobRequest JobAfter(std::initializer_list<uint64_t> others,
                                       v1::JobOutcome outcome = v1::JOB_OUTCOME_UNSPECIFIED) {
    v1::SubmitJobRequest request;
    request.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
    for (const uint64_t other : others) {
      v1::JobDependency& one = *request.mutable_spec()->add_depends_on();
      one.set_job_id(other);
      one.set_outcome(outcome);
    }
    return request;
  }
  absl::StatusOr<uint64_t> Submit(const Principal& who, const v1::SubmitJobRequest& request) {
    const auto submitted = Await<v1::SubmitJobResponse>(
        [&](SubmitJobDone done) { SubmitJob(who, services_, request, std::move(done)); });
    if (!submitted.ok()) return submitted.status();
    return submitted->job_id();
  }
  absl::StatusOr<v1::SubmitJobsResponse> SubmitAll(const v1::SubmitJobsRequest& request) {
    return Await<v1::SubmitJobsResponse>(
        [&](SubmitDone done) { broker::SubmitJobs(alice_, services_, request, std::move(done)); });
  }
  void Cancel(uint64_t job) {
    const auto canceled = Await<ChangedJobs>([&](ChangeDone done) {
      ChangeJobs(alice_, services_, {.change = JobChange::kCancel, .jobs = {job}}, std::move(done));
    });
    ASSERT_TRUE(canceled.ok()) << canceled.status();
  }
  v1::Job Get(uint64_t id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    return GetJob(alice_, services_, request)->job();
  }
  static std::string FieldOf(const absl::Status& status) {
    const auto bad = contract::GetBadRequest(status);
    return bad && bad->field_violations_size() > 0 ? bad->field_violations(0).field() : "";
  }
};

TEST_F(SubmitDependentsTest, AWaitingJobSaysForWhichOneItWaits) {
  SubmitJobs(2);
  const auto waits = Submit(alice_, JobAfter({1, 2}));
  ASSERT_TRUE(waits.ok()) << waits.status();
  v1::StateReason why = Get(*waits).state_reason();
  EXPECT_EQ(why.code(), v1::STATE_REASON_CODE_JOB_DEPENDENCY);
  EXPECT_EQ(why.subject(), "1");
  EXPECT_EQ(why.message(), "waits for the end of job 1, and of 1 other");
  const auto any = Submit(alice_, JobAfter({1}, v1::JOB_OUTCOME_ENDED));
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(Get(*any).state_reason().message(), "waits for the end of job 1");
  Cancel(1);
  EXPECT_EQ(Get(*any).state_reason().code(), v1::STATE_REASON_CODE_NO_CLUSTERS);
  const v1::Job failed = Get(*waits);
  EXPECT_EQ(failed.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(failed.failure().subject(), "1");
}

TEST_F(SubmitDependentsTest, AnEndBeforeTheSubmitIsLookedUp) {
  SubmitJobs(1);
  Cancel(1);
  const auto fails = Submit(alice_, JobAfter({1}));
  ASSERT_TRUE(fails.ok()) << fails.status();
  EXPECT_EQ(Get(*fails).failure().code(), v1::FAILURE_CODE_DEPENDENCY_FAILED);
  const auto goes_on = Submit(alice_, JobAfter({1}, v1::JOB_OUTCOME_FAILED));
  ASSERT_TRUE(goes_on.ok()) << goes_on.status();
  EXPECT_EQ(Get(*goes_on).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(SubmitDependentsTest, AJobThatIsNotThereAndOneThatIsNotSeenAreToldAlike) {
  SubmitJobs(1);
  for (const bool validate_only : {false, true}) {
    v1::SubmitJobRequest hidden = JobAfter({1}), missing = JobAfter({99});
    hidden.set_validate_only(validate_only);
    missing.set_validate_only(validate_only);
    const absl::Status not_seen = Submit(carol_, hidden).status();
    EXPECT_EQ(not_seen.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(not_seen.message(), "spec.depends_on[0].job_id: there is no job 1");
    const absl::Status not_there = Submit(carol_, missing).status();
    EXPECT_EQ(not_there.message(), "spec.depends_on[0].job_id: there is no job 99");
    EXPECT_EQ(contract::GetErrorInfo(not_there)->reason(),
              contract::GetErrorInfo(not_seen)->reason());
  }
}

TEST_F(SubmitDependentsTest, ARepeatIsAnsweredThoughTheOtherJobIsGone) {
  SubmitJobs(1);
  v1::SubmitJobRequest request = JobAfter({1});
  request.set_request_id("once");
  const auto first = Submit(alice_, request);
  ASSERT_TRUE(first.ok()) << first.status();
  Cancel(1);
  ASSERT_TRUE(store_.Commit({core::Change(core::DeleteJob{1})}).ok());
  const auto again = Submit(alice_, request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *first);
  EXPECT_EQ(contract::GetErrorInfo(Submit(alice_, JobAfter({1})).status())->reason(),
            "JOB_DELETED");
}

TEST_F(SubmitDependentsTest, JobsOfOneCallDependOnEachOtherByTheirPlaces) {
  v1::SubmitJobsRequest request;
  *request.add_requests() = JobAfter({});
  *request.add_requests() = JobAfter({});
  request.mutable_requests(1)->mutable_spec()->add_depends_on()->set_request(1);
  for (v1::SubmitJobRequest& one : *request.mutable_requests()) one.set_validate_only(true);
  EXPECT_TRUE(SubmitAll(request).ok());
  for (v1::SubmitJobRequest& one : *request.mutable_requests()) one.set_validate_only(false);
  const auto submitted = SubmitAll(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const uint64_t first = submitted->responses(0).job_id();
  EXPECT_EQ(Get(submitted->responses(1).job_id()).state_reason().subject(),
            fmt::format("{}", first));
  request.mutable_requests(1)->mutable_spec()->mutable_depends_on(0)->set_request(2);
  EXPECT_EQ(FieldOf(SubmitAll(request).status()), "requests[1].spec.depends_on[0].request");
  EXPECT_EQ(FieldOf(Submit(alice_, request.requests(1)).status()), "spec.depends_on[0].request");
}

// A part of a call may have been accepted before, and its job may have ended.
TEST_F(SubmitDependentsTest, APlaceOfARepeatedRequestIsJudgedByItsJob) {
  v1::SubmitJobsRequest request;
  *request.add_requests() = JobAfter({});
  request.mutable_requests(0)->set_request_id("first");
  ASSERT_TRUE(Submit(alice_, request.requests(0)).ok());
  Cancel(1);
  *request.add_requests() = JobAfter({});
  request.mutable_requests(1)->mutable_spec()->add_depends_on()->set_request(1);
  const auto submitted = SubmitAll(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->responses(0).job_id(), 1u);
  EXPECT_EQ(Get(submitted->responses(1).job_id()).failure().subject(), "1");
}

// The readers look while the other job ends: the core asks for its end.
TEST_F(SubmitDependentsTest, AnEndBetweenTheLookAndTheSubmitIsLookedUpAgain) {
  SubmitJobs(1);
  core::Submit submit;
  v1::JobSpec spec = JobAfter({1}).spec();
  spec.set_project("default");
  spec.set_nodes(1);
  submit.items.emplace_back().spec = std::make_shared<const v1::JobSpec>(spec);
  submit.user = "alice";
  Cancel(1);
  const auto direct = Await<v1::SubmitJobsResponse>(
      [&](SubmitDone done) { engine_->Submit(submit, std::move(done)); });
  ASSERT_EQ(contract::GetErrorInfo(direct.status())->reason(), "DEPENDENCY_ENDED");
  EXPECT_EQ(contract::GetErrorInfo(direct.status())->metadata().at("job_id"), "1");
  const auto looked = Await<v1::SubmitJobsResponse>(
      [&](SubmitDone done) { SubmitWithDependencies(alice_, services_, submit, std::move(done)); });
  EXPECT_TRUE(looked.ok()) << looked.status();
}

TEST_F(SubmitDependentsTest, JobsThatRunAgainTogetherDependOnTheNewOnes) {
  SubmitJobs(1);
  const auto second = Submit(alice_, JobAfter({1}));
  ASSERT_TRUE(second.ok()) << second.status();
  Cancel(1);
  v1::RerunJobsRequest request;
  request.add_job_ids(1);
  request.add_job_ids(*second);
  const auto again = Await<v1::RerunJobsResponse>(
      [&](RerunDone done) { RerunJobs(alice_, services_, request, std::move(done)); });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Get(again->jobs(1).job_id()).state_reason().subject(),
            fmt::format("{}", again->jobs(0).job_id()));
  request.clear_job_ids();
  request.add_job_ids(*second);
  const auto alone = Await<v1::RerunJobsResponse>(
      [&](RerunDone done) { RerunJobs(alice_, services_, request, std::move(done)); });
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(Get(alone->jobs(0).job_id()).failure().subject(), "1") << "judged anew";
}

TEST_F(SubmitDependentsTest, TheProgramFindsTheEndsInItsEnvironment) {
  SubmitJobs(1);
  Cancel(1);
  const auto second = Submit(alice_, JobAfter({1}, v1::JOB_OUTCOME_ENDED));
  ASSERT_TRUE(second.ok()) << second.status();
  std::vector<agent::v1::Assignment> assignments(1);
  assignments[0].set_job_id(*second);
  assignments[0].set_run(1);
  ASSERT_TRUE(AssignmentMessages::FillFromStore(store_, assignments).ok());
  EXPECT_EQ(assignments[0].spec().env().at("MUSTER_DEPENDENCY_1"), "CANCELED");
  EXPECT_EQ(assignments[0].spec().depends_on_size(), 0);
  AssignmentMessages memory;
  core::InsertJob insert;
  insert.id = *second;
  insert.spec = std::make_shared<const v1::JobSpec>(Get(*second).spec());
  memory.Remember({insert});
  assignments[0].clear_spec();
  EXPECT_FALSE(memory.FillFromMemory(assignments)) << "it does not know the ends";
}

}  // namespace
}  // namespace muster::broker
