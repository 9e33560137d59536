// muster sbatch, against a fake broker.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

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
using ::testing::StartsWith;
using namespace std::string_literals;

TEST_F(SlurmVerbsTest, SbatchSendsTheScriptAsItIsWithItsOptionsAndArguments) {
  const std::string script =
      "#!/bin/bash\n#SBATCH -c8 --mem=10G --gres=gpu:h100:1 -o x-%j.out\nx\n";
  const Outcome outcome =
      Command(broker_.address(),
              {"sbatch", "-t", "90", "--export=LR,A=1", WriteScript(script), "--epochs", "3"},
              false, {"LR=0.1", "SECRET=no", "SBATCH_ACCOUNT=vision"})
          .Finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Submitted batch job 42\n");
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].request_id().size(), 36u);
  const v1::JobSpec& spec = submitted_[0].spec();
  EXPECT_EQ(spec.command().script(), script);
  EXPECT_THAT(spec.command().script_arguments(), ElementsAre("--epochs", "3"));
  EXPECT_EQ(spec.name(), "train.sh");
  EXPECT_EQ(spec.time_limit().seconds(), 5400);
  EXPECT_EQ(spec.resources().cpu_millis(), 8000u);
  EXPECT_EQ(spec.slurm().account(), "vision");
  EXPECT_EQ(spec.slurm().batch_script().output(), "x-%j.out");
  EXPECT_EQ(spec.working_directory(), std::filesystem::current_path().string());
  EXPECT_TRUE(spec.env().empty());
  EXPECT_THAT(spec.slurm().batch_script().environment().named(), ElementsAre("A", "LR"));
}

TEST_F(SlurmVerbsTest, SbatchAnswersInTheFormThatWasAskedFor) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  EXPECT_EQ(Run({"sbatch", "--parsable", script}).out, "42\n");
  EXPECT_EQ(Run({"-q", "sbatch", script}).out, "42\n");
  EXPECT_EQ(Run({"sbatch", "-M", "lab", script}).out, "Submitted batch job 42 on cluster lab\n");
  EXPECT_EQ(Run({"sbatch", "-M", "lab", "--parsable", script}).out, "42;lab\n");
  broker_.submit_warnings.emplace_back().set_message("no claim");
  const Outcome quiet = Run({"sbatch", "-Q", script});
  EXPECT_EQ(quiet.out + quiet.err, "");
  const Outcome number = Run({"sbatch", "-Q", "--parsable", script});
  EXPECT_EQ(number.out + number.err, "42\n");
  EXPECT_EQ(Run({"sbatch", script}).err, "muster: warning: no claim\n");
  broker_.submit_warnings.clear();
  EXPECT_THAT(Run({"-o", "jsonl", "sbatch", script}).out, HasSubstr("\"job_id\":\"42\""));
  EXPECT_EQ(Run({"sbatch", "--wrap", "echo a b"}).out, "Submitted batch job 42\n");
  EXPECT_THAT(submitted_.back().spec().command().script(), HasSubstr("\necho a b\n"));
  EXPECT_EQ(submitted_.back().spec().name(), "wrap");
}

TEST_F(SlurmVerbsTest, SbatchRefusesWhatIsNoScriptInSbatchsWords) {
  EXPECT_THAT(Run({"sbatch", WriteScript("echo\n")}).err,
              HasSubstr("This does not look like a batch script"));
  EXPECT_THAT(Run({"sbatch", WriteScript("#!/bin/sh\r\ntrue\r\n")}).err,
              HasSubstr("DOS line breaks"));
  EXPECT_THAT(Run({"sbatch"}).err, HasSubstr("Batch script is empty!")) << "standard input";
  EXPECT_THAT(Run({"sbatch", "/nonexistent.sh"}).err, HasSubstr("/nonexistent.sh"));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(SlurmVerbsTest, SbatchNamesItsOptionsInErrorsAndExitsWith2ForThoseOfUsage) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  for (const char* option : {"--nosuch", "--time=soon", "--mail-user=a b", "--array=1-9%2"}) {
    const Outcome outcome = Run({"sbatch", option, script});
    EXPECT_EQ(outcome.code, 2) << option;
    const std::string_view name = option;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(name.substr(0, name.find('='))))) << option;
  }
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER",
                           "placement.clusters names \"nope\", and no cluster of that name",
                           {{"field", "spec.placement.clusters"}});
  };
  const Outcome outcome = Run({"sbatch", "-M", "nope", script});
  EXPECT_EQ(outcome.code, 13);
  EXPECT_EQ(outcome.err,
            "muster: --clusters: placement.clusters names \"nope\", and no cluster of that name "
            "[UNKNOWN_CLUSTER]\n");
}

TEST_F(SlurmVerbsTest, SbatchSaysOnceWhichVariablesStay) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  const auto run = [&](std::vector<std::string> words) {
    return Command(broker_.address(), std::move(words), false, {"HF_TOKEN=canary", "LR=1"})
        .Finish();
  };
  const Outcome outcome = run({"sbatch", script});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, StartsWith("muster: these variables stay here"));
  EXPECT_THAT(outcome.err, HasSubstr(": HF_TOKEN; "));
  EXPECT_THAT(outcome.err, HasSubstr("--export=ALL,HF_TOKEN\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("canary")));
  EXPECT_EQ(run({"sbatch", "-Q", script}).err, "");
  EXPECT_EQ(run({"sbatch", "--export=ALL,HF_TOKEN", script}).err, "");
}

TEST_F(UploadTest, SbatchBringsTheVariablesOnlyToABrokerThatLacksThem) {
  std::vector<v1::JobSpec> judged;
  broker_.submit_job =
      [&](const v1::SubmitJobRequest& request) -> absl::StatusOr<v1::SubmitJobResponse> {
    judged.push_back(request.spec());
    const std::string& file = request.spec().slurm().batch_script().environment().file_sha256();
    if (!kept_.contains(file)) {
      return contract::Error(absl::StatusCode::kFailedPrecondition, "FILES_MISSING", "not there",
                             {{"field", "spec.slurm.batch_script.environment.file_sha256"}});
    }
    v1::SubmitJobResponse response;
    response.set_job_id(42);
    return response;
  };
  const auto run = [&](std::vector<std::string> words) {
    return Command(broker_.address(), std::move(words), false, {"LR=0.1", "HF_TOKEN=t"}).Finish();
  };
  Outcome outcome = run({"sbatch", "--export=LR,HF_TOKEN", "--wrap", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Submitted batch job 42\n");
  EXPECT_EQ(uploads_, 1);
  ASSERT_EQ(judged.size(), 2u);
  EXPECT_EQ(kept_[judged[1].slurm().batch_script().environment().file_sha256()],
            "HF_TOKEN=t\0LR=0.1\0SLURM_EXPORT_ENV=LR,HF_TOKEN\0SLURM_GET_USER_ENV=1\0"s);
  outcome = run({"sbatch", "--export=LR,HF_TOKEN", "--wrap", "false"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(uploads_, 1);
  EXPECT_EQ(judged.size(), 3u) << "one call";
  upload_error_ = absl::ResourceExhaustedError("the store is full");
  outcome = run({"sbatch", "--export=LR", "--wrap", "true"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("the store is full"));
}

TEST_F(UploadTest, SbatchReadsAFileOfVariables) {
  Write("vars", "A=1\0API_KEY=k"s);
  const std::string path = directory_ / "vars";
  Outcome outcome = RunAtHome({"sbatch", "--export-file", path, "--wrap", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(submitted_.back().spec().slurm().batch_script().environment().named(),
              ElementsAre("A", "API_KEY"));
  Write("vars", "A=1\nB=2\0C"s);
  outcome = RunAtHome({"sbatch", "--export-file", path, "--wrap", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--export-file=" + path));
  outcome = RunAtHome({"sbatch", "--export-file", "/nonexistent", "--wrap", "true"});
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent"));
}

TEST_F(UploadTest, TheListOfVariablesThatStayIsInTheUsersFile) {
  Write(".config/muster/config.yaml", "sbatch:\n  leave_behind: [LR, DATA_*]\n");
  Command command(broker_.address(), {"sbatch", "--wrap", "true"}, false,
                  {"HOME=" + directory_.string(), "LR=1", "DATA_X=2", "SSH_AGENT_PID=3"});
  EXPECT_THAT(command.Finish().err, HasSubstr(": DATA_X, LR; "));
}

TEST_F(SlurmVerbsTest, ADependencyOnAJobOfMustersGetsSlurmsNumberAndItsCluster) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:7", script}).code, 0);
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "afterok:4711");
  EXPECT_THAT(submitted_[0].spec().placement().clusters(), ElementsAre("lab"));
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:7", "-M", "far", script}).err,
              HasSubstr("job 7 is on cluster lab, and this one is for far"));
  const Outcome unknown = Run({"sbatch", "-d", "afterok:99", script});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("--dependency: no such job"));
  broker_.watch_jobs = [](const auto&, const auto&) { return absl::OkStatus(); };
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:8", script}).err,
              HasSubstr("--dependency: job 8 has no number of Slurm's yet"));
  EXPECT_EQ(submitted_.size(), 1u);
}

TEST_F(SlurmVerbsTest, ADependencyThatSlurmCannotKeepIsRefusedAtOnceWithWhatDoes) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  // A caller that waits for a step waits in vain.
  broker_.watch_jobs = [this](const auto&, const auto& write) {
    while (!stop_ && write(client::Step(99, 1, v1::JOB_STATE_PENDING)))
      absl::SleepFor(absl::Milliseconds(10));
    return absl::OkStatus();
  };
  broker_.get_cluster = [](const auto& request) -> absl::StatusOr<v1::GetClusterResponse> {
    v1::GetClusterResponse response;
    *response.mutable_cluster() = Lab();
    response.mutable_cluster()->set_name(request.name());
    if (request.name() == "kube") response.mutable_cluster()->set_kind(v1::CLUSTER_KIND_KUBERNETES);
    return response;
  };
  jobs_[1].mutable_runs(0)->set_cluster("kube");
  const absl::Time start = absl::Now();
  const Outcome outcome = Run({"sbatch", "-d", "afterok:8", script});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "muster: --dependency: job 8 is on cluster kube, which is of kind kubernetes, and only "
            "Slurm lets jobs wait for each other; have Muster wait: muster wait 8 && muster sbatch "
            "...\n");
  EXPECT_THAT(Run({"sbatch", "-d", "afternotok:8", script}).err, HasSubstr("muster wait 8 || "));
  EXPECT_THAT(Run({"sbatch", "-d", "afterany:8", script}).err, HasSubstr("muster wait 8; "));
  EXPECT_THAT(Run({"sbatch", "-d", "after:8", script}).err, HasSubstr("once job 8 is RUNNING"));
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:8:7", script}).err,
              HasSubstr("muster wait 8 7 && muster sbatch"));
  jobs_[1].set_state(v1::JOB_STATE_QUEUED);
  jobs_[1].clear_runs();
  jobs_[1].set_held(true);
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:8", script}).err,
              HasSubstr("job 8 is held, and no cluster has it, so that Slurm cannot wait for it; "
                        "let it go first (muster release 8), or have Muster wait: muster wait 8"));
  EXPECT_LT(absl::Now() - start, kMaxNumberWait / 2) << "none of them waits";
  EXPECT_THAT(submitted_, IsEmpty());
  // It may get a cluster any moment.
  jobs_[1].set_held(false);
  *jobs_[1].mutable_state_reason() =
      client::Because("cluster \"lab\": it fits, and its agent is not connected");
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:8", script}).err,
              HasSubstr("job 8 is QUEUED, and no cluster has it, so that Slurm cannot wait for it "
                        "(cluster \"lab\": it fits, and its agent is not connected); submit"));
  stop_ = true;
}

TEST_F(SlurmVerbsTest, ADependencyOnAJobThatHasEndedIsDecidedAtOnce) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  const auto sent_for = [&](const std::string& dependency) {
    submitted_.clear();
    const Outcome outcome = Run({"sbatch", "-d", dependency, script});
    return submitted_.empty() ? outcome.err : submitted_[0].spec().slurm().dependency();
  };
  jobs_[1].set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(sent_for("afterok:8"), "") << "Slurm may have forgotten it";
  EXPECT_EQ(sent_for("afterany:8,afterok:7"), "afterok:4711");
  EXPECT_EQ(sent_for("afterok:8:7"), "afterok:4711");
  EXPECT_THAT(sent_for("afternotok:8"), HasSubstr("job 8 has ended as SUCCEEDED"));
  jobs_[1].set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(sent_for("afternotok:8"), "");
  EXPECT_EQ(sent_for("afterany:8"), "");
  EXPECT_THAT(
      sent_for("afterok:7:8"),
      HasSubstr("job 8 has ended as FAILED, so that afterok would never let this one start"));
  // The minutes after its start have to be over as well.
  jobs_[1].mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) - 60);
  EXPECT_EQ(sent_for("after:8+1"), "");
  EXPECT_THAT(sent_for("after:8+5"), HasSubstr("the 5 minutes after it that \"+5\" asks for"));
  // One that waits for its next run has none that Slurm could wait for.
  jobs_[0].set_state(v1::JOB_STATE_QUEUED);
  jobs_[0].mutable_runs(0)->set_state(v1::RUN_STATE_FAILED);
  broker_.watch_jobs = [](const auto&, const auto&) { return absl::OkStatus(); };
  EXPECT_THAT(sent_for("afterok:7"), HasSubstr("job 7 is QUEUED, and no cluster has it"));
}

// The broker gives numbers in a row, from 42 on, and has the jobs then.
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
  EXPECT_THAT(Run({"scancel", "42_[5"}).err, HasSubstr("Invalid job id specified"));
  submitted_.clear();
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:42,afterany:42_5", script_}).code, 0);
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "afterok:1042:1043:1044,afterany:1043");
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
  const Outcome logs = Run({"logs", "42_*"});
  EXPECT_EQ(logs.code, 2);
  EXPECT_THAT(logs.err, HasSubstr("one job at a time"));
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

TEST_F(SlurmVerbsTest, SbatchWaitsAndExitsAsTheScriptDid) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  job_.mutable_exit()->set_code(5);
  jobs_.push_back(job_);
  const Outcome outcome = Run({"sbatch", "-W", WriteScript("#!/bin/sh\nexit 5\n")});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "Submitted batch job 42\n");
}

TEST_F(SlurmVerbsTest, SbatchTestOnlyPlansAndSubmitsNothing) {
  v1::PlanJobResponse plans;
  v1::JobPlan* plan = plans.add_plans();
  plan->set_cluster("lab");
  plan->mutable_estimated_start_time()->set_seconds(1'772'366'400);
  plan->add_nodes("n1");
  broker_.plan_job = [&](const auto&) -> absl::StatusOr<v1::PlanJobResponse> { return plans; };
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  const Outcome outcome = Run({"sbatch", "--test-only", script});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "sbatch: Job to start at 2026-03-01T12:00:00Z on nodes n1 of cluster lab\n");
  v1::ClusterCheck* check = plan->add_checks();
  check->set_subject("partition gpu");
  check->set_result(v1::CHECK_RESULT_FAIL);
  check->set_seen("it is down");
  const Outcome bad = Run({"sbatch", "--test-only", script});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("could not run on cluster lab; partition gpu: it is down"));
  EXPECT_THAT(submitted_, IsEmpty());
}

}  // namespace
}  // namespace muster::cli
