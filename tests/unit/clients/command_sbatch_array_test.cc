// muster sbatch --array, against a fake broker.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/slurm/dependency.h"
#include "contract/errors.h"
#include "tests/unit/clients/slurm_verbs_fixture.h"
#include "tests/unit/clients/upload_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::string_literals;

class ArrayTest : public SlurmVerbsTest {
 protected:
  ArrayTest() {
    broker_.submit_jobs =
        [this](const v1::SubmitJobsRequest& request) -> absl::StatusOr<v1::SubmitJobsResponse> {
      v1::SubmitJobsResponse response;
      for (const v1::SubmitJobRequest& one : request.requests()) {
        submitted_.push_back(one);
        v1::Job job = JobInState(41 + submitted_.size(), v1::JOB_STATE_RUNNING);
        *job.mutable_spec() = one.spec();
        job.set_cluster("lab");
        job.mutable_runs(0)->set_cluster("lab");
        job.mutable_runs(0)->set_external_id(std::to_string(1000 + job.id()));
        response.add_responses()->set_job_id(job.id());
        jobs_.push_back(job);
      }
      return response;
    };
    script_ = WriteScript("#!/bin/sh\ntrue\n");
  }

  std::string script_;
};

TEST_F(ArrayTest, EachTaskIsAJobOfOneCall) {
  const Outcome outcome = Run({"sbatch", "-a", "1,5-7", "--export=A=1", script_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Submitted batch job 42\n");
  EXPECT_EQ(outcome.err, "muster: its 4 tasks are the jobs 42 to 45\n");
  ASSERT_EQ(submitted_.size(), 4u);
  std::set<std::string> request_ids;
  std::string ids;
  for (const auto& one : submitted_) {
    request_ids.insert(one.request_id());
    const auto& env = one.spec().env();
    ids += env.at("SLURM_ARRAY_TASK_ID") + " ";
    EXPECT_EQ(env.at("SLURM_ARRAY_TASK_COUNT"), "4");
    EXPECT_EQ(env.at("SLURM_ARRAY_TASK_MIN"), "1");
    EXPECT_EQ(env.at("SLURM_ARRAY_TASK_MAX"), "7");
    EXPECT_THAT(one.spec().slurm().batch_script().environment().named(), ElementsAre("A"));
    EXPECT_EQ(one.spec().slurm().batch_script().output(), "slurm-%A_%a.out");
  }
  EXPECT_EQ(ids, "1 5 6 7 ");
  EXPECT_EQ(request_ids.size(), 4u);
}

TEST_F(ArrayTest, ItsNumberMeansAllItsTasksAndEachHasANameOfItsOwn) {
  EXPECT_EQ(Run({"sbatch", "--parsable", "-a", "1,5-6", script_}).out, "42\n");
  EXPECT_EQ(Run({"squeue", "-hS", "i", "-j", "42", "-o", "%i %F %K"}).out,
            "42_1 42 1\n42_5 42 5\n42_6 42 6\n");
  EXPECT_EQ(Run({"squeue", "-h", "-j", "42_5,7", "-S", "i", "-o", "%i %K"}).out, "7 N/A\n42_5 5\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "42_6", "-o", "JobID,JobIDRaw"}).out, "42_6|1044\n");
  EXPECT_THAT(Run({"squeue", "-j", "42_2"}).err, HasSubstr("job 42 has no task 2"));
  EXPECT_THAT(Run({"squeue", "-j", "7_1"}).err, HasSubstr("job 7 has no task 1"));
  std::vector<std::vector<uint64_t>> canceled;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    canceled.emplace_back(request.job_ids().begin(), request.job_ids().end());
    return v1::CancelJobsResponse();
  };
  EXPECT_EQ(Run({"scancel", "42_5"}).code, 0);
  EXPECT_EQ(Run({"scancel", "42"}).code, 0);
  EXPECT_EQ(Run({"scancel", "43", "99"}).code, 0) << "a task's own number means the task";
  EXPECT_EQ(Run({"scancel", "42_[5-6]"}).code, 0);
  EXPECT_EQ(Run({"scancel", "42_[1,6],7"}).code, 0);
  EXPECT_EQ(Run({"scancel", "42_*"}).code, 0);
  EXPECT_THAT(canceled, ElementsAre(ElementsAre(43u), ElementsAre(42u, 43u, 44u),
                                    ElementsAre(43u, 99u), ElementsAre(43u, 44u),
                                    ElementsAre(42u, 44u, 7u), ElementsAre(42u, 43u, 44u)));
  EXPECT_THAT(Run({"scancel", "42_[5-]"}).err, HasSubstr("Invalid job id specified"));
  for (const char* name : {"42_[5", "42_[]", "42_[-3]", "42_[0-]", "42_[,]"})
    EXPECT_THAT(Run({"scancel", name}).err, HasSubstr("Invalid job id specified")) << name;
  submitted_.clear();
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:42,afterany:42_5", script_}).code, 0);
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "afterok:1042:1043:1044,afterany:1043");
}

TEST_F(ArrayTest, ADependencyOnAllTasksNamesSlurmsArrayOnceWhereItIsOne) {
  EXPECT_EQ(Run({"sbatch", "--parsable", "-a", "1,5-6%2", script_}).out, "42\n");
  // The three tasks are behind the fixture's two jobs.
  for (size_t i = 0; i < 3; ++i) jobs_[2 + i].mutable_runs(0)->set_external_id("17_"s + "156"[i]);
  const auto dependency = [&](const std::string& written) {
    submitted_.clear();
    const size_t before = jobs_.size();
    const Outcome outcome = Run({"sbatch", "-d", written, script_});
    jobs_.resize(before);
    return outcome.code == 0 ? submitted_[0].spec().slurm().dependency() : outcome.err;
  };
  EXPECT_EQ(dependency("afterok:42+5,afterany:42_5"), "afterok:17+5,afterany:17_5");
  EXPECT_EQ(dependency("aftercorr:42"), "aftercorr:17");
  jobs_[2].set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(dependency("afterok:42"), "afterok:17") << "Slurm knows how that one ended";
  jobs_[2].set_state(v1::JOB_STATE_FAILED);
  EXPECT_THAT(dependency("afterok:42"), HasSubstr("would never let this one start"));
  EXPECT_EQ(dependency("aftercorr:42"), "aftercorr:17") << "the other tasks may start";
  jobs_[2].set_state(v1::JOB_STATE_RUNNING);
  jobs_[2].mutable_runs(0)->set_number(2);
  jobs_[2].mutable_runs(0)->set_external_id("23");
  EXPECT_EQ(dependency("afterok:42"), "afterok:23:17_5:17_6") << "one of them runs again";
  EXPECT_THAT(dependency("aftercorr:42"), HasSubstr("not one array of Slurm's"));
}

TEST_F(ArrayTest, ALineOfTheQueueTellsTheLimitOfSimultaneousTasks) {
  EXPECT_EQ(Run({"sbatch", "--parsable", "-a", "1,5-6%2", script_}).out, "42\n");
  EXPECT_EQ(submitted_[0].spec().env().at("MUSTER_ARRAY_LIMIT"), "2");
  for (size_t i = 3; i < 5; ++i) jobs_[i].set_state(v1::JOB_STATE_PENDING);
  EXPECT_EQ(Run({"squeue", "-hS", "i", "-j", "42", "-o", "%i %K"}).out,
            "42_1 1\n42_[5-6%2] 5-6%2\n");
}

TEST_F(ArrayTest, WaitingIsForAllAndTheHighestCodeCounts) {
  broker_.submit_jobs =
      [this](const v1::SubmitJobsRequest& request) -> absl::StatusOr<v1::SubmitJobsResponse> {
    v1::SubmitJobsResponse response;
    for (int i = 0; i < request.requests_size(); ++i) {
      v1::Job job = JobInState(42 + i, v1::JOB_STATE_FAILED);
      job.mutable_exit()->set_code(i == 1 ? 9 : 3);
      jobs_.push_back(job);
      response.add_responses()->set_job_id(job.id());
    }
    return response;
  };
  broker_.watch_jobs = [](const v1::WatchJobsRequest& request, const auto& write) {
    for (uint64_t id : request.job_ids()) write(client::Step(id, id, v1::JOB_STATE_FAILED));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"sbatch", "--wait", "-a", "1-3", script_}).code, 9);
}

TEST_F(ArrayTest, WhatIsWrongWithItsScriptIsSaidAsOfOneJob) {
  broker_.submit_jobs = [](const auto&) -> absl::StatusOr<v1::SubmitJobsResponse> {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
                           "no cluster can ever run this job", {{"request", "0"}});
  };
  const Outcome outcome = Run({"sbatch", "--array=1-3", "--wrap", "true"});
  EXPECT_EQ(outcome.code, 13);
  EXPECT_EQ(outcome.err, "muster: no cluster can ever run this job [CANNOT_BE_PLACED]\n");
}

TEST_F(ArrayTest, WhoReleasesOrCancelsOneTaskIsToldOfTheOthers) {
  EXPECT_EQ(Run({"sbatch", "-a", "1,5-7", script_}).code, 0);
  broker_.cancel_jobs = [](const auto&) -> absl::StatusOr<v1::CancelJobsResponse> {
    return v1::CancelJobsResponse();
  };
  broker_.release_jobs = [](const auto&) -> absl::StatusOr<v1::ReleaseJobsResponse> {
    return v1::ReleaseJobsResponse();
  };
  EXPECT_THAT(
      Run({"release", "42"}).err,
      HasSubstr("muster: job 42 is one of the 4 tasks of the array 42; the others: 43 to 45; all "
                "of them: muster release '42_*'\n"));
  EXPECT_EQ(
      Run({"cancel", "43"}).err,
      "muster: job 43 is one of the 4 tasks of the array 42; the others: 42, 44 to 45; all of "
      "them: muster cancel '42_*'\n");
  EXPECT_THAT(Run({"cancel", "45"}).err, HasSubstr("the others: 42 to 44; "));
  EXPECT_EQ(Run({"cancel", "42", "43"}).err, "") << "who names several knows of them";
  EXPECT_EQ(Run({"cancel", "7"}).err, "") << "no task of an array";
  EXPECT_EQ(Run({"-q", "cancel", "43"}).err, "") << "programs read it";
}

TEST_F(ArrayTest, EveryVerbTakesATaskOrAllOfAnArray) {
  EXPECT_EQ(Run({"sbatch", "-a", "1,5-7", script_}).code, 0);
  std::vector<std::vector<uint64_t>> asked;
  broker_.release_jobs = [&](const v1::ReleaseJobsRequest& request) {
    asked.emplace_back(request.job_ids().begin(), request.job_ids().end());
    return v1::ReleaseJobsResponse();
  };
  EXPECT_EQ(Run({"release", "42_*", "7", "42_6"}).code, 0);
  EXPECT_EQ(Run({"release", "42_5"}).err, "muster: job 43 was not held\n") << "no word of others";
  EXPECT_THAT(asked, ElementsAre(ElementsAre(42u, 43u, 44u, 45u, 7u, 44u), ElementsAre(43u)));
  EXPECT_EQ(Run({"show", "-q", "42_*"}).out, "42\n43\n44\n45\n");
  EXPECT_EQ(Run({"show", "-q", "42_[5-6]"}).out, "43\n44\n");
  const Outcome page = Run({"show", "42_7.1"});
  EXPECT_THAT(page.out, HasSubstr("Job 45 "));
  EXPECT_THAT(page.out, HasSubstr("task 7 of the array 42, number 4 of its 4 tasks"));
  EXPECT_THAT(page.out, Not(HasSubstr("MUSTER_ARRAY_PLACE")));
  const Outcome none = Run({"release", "42_9"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("job 42 has no task 9"));
  EXPECT_EQ(Run({"release", "7_*"}).err, "muster: job 7 is no job array; write 7\n");
  EXPECT_EQ(Run({"release", "43_*"}).err,
            "muster: job 43 is no array, but a task of the array 42; write 42\n");
  EXPECT_THAT(Run({"release", "42_x"}).err, HasSubstr("of a job array 42_5, '42_[1-3]' or '42_*'"));
  EXPECT_THAT(Run({"release", "42_[5-x]"}).err, HasSubstr("is not a job"));
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(ArrayTest, TestOnlyPlansItsFirstTaskAsItWouldBeSubmitted) {
  std::vector<v1::JobSpec> planned;
  broker_.plan_job = [&](const v1::PlanJobRequest& request) -> absl::StatusOr<v1::PlanJobResponse> {
    planned.push_back(request.spec());
    v1::PlanJobResponse response;
    response.add_plans()->set_cluster("lab");
    return response;
  };
  EXPECT_EQ(Run({"sbatch", "--test-only", "-a", "5-7", script_}).code, 0);
  EXPECT_THAT(submitted_, IsEmpty());
  EXPECT_EQ(Run({"sbatch", "-a", "5-7", script_}).code, 0);
  ASSERT_EQ(planned.size(), 1u);
  ASSERT_EQ(submitted_.size(), 3u);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(planned[0], submitted_[0].spec()));
  EXPECT_EQ(planned[0].env().at("SLURM_ARRAY_TASK_ID"), "5");
}

TEST_F(ArrayTest, WhatIsTooLargeForOneCallIsRefusedBeforeItIsSent) {
  const std::string large = WriteScript("#!/bin/sh\n" + std::string(20'000, '#') + "\n");
  EXPECT_EQ(Run({"sbatch", "-a", "1-150", large}).code, 0);
  submitted_.clear();
  const Outcome outcome = Run({"sbatch", "-a", "1-900", large});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("submit fewer tasks at a time"));
  EXPECT_THAT(submitted_, IsEmpty());
}

}  // namespace
}  // namespace muster::cli
