// muster sbatch, against a fake broker.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/slurm/dependency.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "tests/unit/clients/slurm_verbs_fixture.h"
#include "tests/unit/clients/upload_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::AllOf;
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

// A job as a cluster leaves it that has refused it.
v1::Job RefusedJob() {
  v1::Job job = JobInState(42, v1::JOB_STATE_FAILED);
  job.mutable_runs(0)->set_state(v1::RUN_STATE_FAILED);
  job.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CONFIG);
  job.mutable_failure()->set_message("The cluster refused the run: Invalid qos specification");
  job.mutable_failure()->set_remedy("Set slurm.qos (--qos) to a QOS of yours.");
  return job;
}

TEST_F(SlurmVerbsTest, SbatchWaitsForTheClustersAnswerAndTellsARefusal) {
  v1::Job launching = JobInState(42, v1::JOB_STATE_PENDING);
  launching.mutable_runs(0)->set_state(v1::RUN_STATE_LAUNCHING);
  jobs_.push_back(launching);
  broker_.watch_jobs = [this](const auto&, const auto& write) {
    v1::WatchJobsResponse begins = client::Step(42, 2, v1::JOB_STATE_PENDING);
    begins.mutable_changes(0)->mutable_transition()->set_run_state(v1::RUN_STATE_LAUNCHING);
    write(begins);
    jobs_.back() = RefusedJob();
    write(client::Step(42, 3, v1::JOB_STATE_FAILED));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"sbatch", "--parsable", "-q", "x", "--wrap", "true"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "muster: job 42: The cluster refused the run: Invalid qos specification. Set slurm.qos "
            "(--qos) to a QOS of yours.\n");
}

TEST_F(SlurmVerbsTest, SbatchDoesNotWaitForAClusterThatIsNotThere) {
  std::atomic<int> watches = 0;
  broker_.watch_jobs = [&watches](const auto&, const auto&) {
    ++watches;
    return absl::OkStatus();
  };
  jobs_.push_back(JobInState(42, v1::JOB_STATE_QUEUED));
  jobs_.back().clear_runs();
  *jobs_.back().mutable_state_reason() =
      client::Because("full", v1::STATE_REASON_CODE_CLUSTER_FULL);
  EXPECT_EQ(Run({"sbatch", "--parsable", "--wrap", "true"}).out, "42\n");
  jobs_.back() = JobInState(42, v1::JOB_STATE_PENDING);
  jobs_.back().mutable_runs(0)->set_state(v1::RUN_STATE_PENDING);
  EXPECT_EQ(Run({"sbatch", "--parsable", "--wrap", "true"}).out, "42\n");
  EXPECT_EQ(watches, 0);
  // One that is about to get it is waited for, until the launch has gone well.
  jobs_.back() = JobInState(42, v1::JOB_STATE_QUEUED);
  jobs_.back().clear_runs();
  *jobs_.back().mutable_state_reason() =
      client::Because("soon", v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED);
  broker_.watch_jobs = [&watches](const auto&, const auto& write) {
    ++watches;
    v1::WatchJobsResponse step = client::Step(42, 2, v1::JOB_STATE_PENDING);
    step.mutable_changes(0)->mutable_transition()->set_run_state(v1::RUN_STATE_PENDING);
    write(step);
    while (write(client::Heartbeat(2))) absl::SleepFor(absl::Milliseconds(10));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"sbatch", "--parsable", "--wrap", "true"}).out, "42\n");
  EXPECT_EQ(watches, 1);
}

TEST_F(SlurmVerbsTest, SbatchPrintsTheNumberOfAJobThatFailedAfterItsLaunch) {
  jobs_.push_back(RefusedJob());
  jobs_.back().mutable_runs(0)->set_external_id("4712");
  EXPECT_EQ(Run({"sbatch", "--parsable", "--wrap", "true"}).out, "42\n");
}

TEST_F(SlurmVerbsTest, AJobWithoutAProgramHasNoExitCodeForItsReason) {
  jobs_ = {RefusedJob()};
  EXPECT_EQ(Run({"squeue", "-t", "F", "-ho", "%t %r"}).out, "F JobLaunchFailure\n");
  jobs_[0].mutable_exit()->set_code(3);
  EXPECT_EQ(Run({"squeue", "-t", "F", "-ho", "%t %r"}).out, "F NonZeroExitCode\n");
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
  for (const char* option : {"--nosuch", "--time=soon", "--mail-user=a b", "--array=9-1"}) {
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

TEST_F(SlurmVerbsTest, SbatchNamesItsOptionsInPlaceOfTheFieldsThatTheBrokerNames) {
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    absl::Status status =
        contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
                        "pool \"gpu\" has a time limit of 1h, 2h are needed; ask for at most 1h "
                        "(time_limit)");
    v1::StateReason reason;
    reason.add_clusters()->add_shortages()->set_resource("time_limit");
    reason.add_clusters()->add_shortages()->set_resource("gpus:H100");
    contract::AttachReason(reason, &status);
    return status;
  };
  EXPECT_EQ(
      Run({"sbatch", "--wrap", "true"}).err,
      "muster: --time, --gres: pool \"gpu\" has a time limit of 1h, 2h are needed; ask for at "
      "most 1h (time_limit) [CANNOT_BE_PLACED]\n");
  EXPECT_THAT(Run({"run", "--", "true"}).err, StartsWith("muster: pool")) << "no user of sbatch";
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::BadField("spec.resources.memory_bytes", "1 is too little");
  };
  EXPECT_EQ(Run({"sbatch", "--wrap", "true"}).err, "muster: --mem: 1 is too little\n");
}

TEST_F(SlurmVerbsTest, SbatchHelpsWithItsOptionsAndSubmitsNothing) {
  for (const char* option : {"--help", "-h"}) {
    const Outcome help = Run({"sbatch", option, "--wrap", "true"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("-t, --time=TIME"));
  }
  EXPECT_THAT(RunCommand("", {"sbatch", "--help"}).out, HasSubstr("-t, --time=TIME"));
  const Outcome usage = Run({"sbatch", "--usage"});
  EXPECT_EQ(usage.code, 0);
  EXPECT_THAT(usage.out, HasSubstr("Usage: muster sbatch [--account=NAME]"));
  EXPECT_THAT(submitted_, IsEmpty());
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
  EXPECT_THAT(
      kept_[judged[1].slurm().batch_script().environment().file_sha256()],
      AllOf(StartsWith("HF_TOKEN=t\0LR=0.1\0SLURM_EXPORT_ENV=LR,HF_TOKEN\0SLURM_GET_USER_ENV=1\0"s),
            HasSubstr("\0SLURM_RLIMIT_NOFILE="s), HasSubstr("\0SLURM_UMASK=0"s)));
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
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:7", "-M", "far", script}).code, 0);
  ASSERT_EQ(submitted_.size(), 2u);
  EXPECT_EQ(submitted_[1].spec().depends_on(0).job_id(), 7u) << "Muster waits over clusters";
  EXPECT_THAT(submitted_[1].spec().placement().clusters(), ElementsAre("far"));
  const Outcome unknown = Run({"sbatch", "-d", "afterok:99", script});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("--dependency: no such job"));
  EXPECT_THAT(Run({"sbatch", "-d", "afternotok:99?afterok:7", script}).err,
              HasSubstr("--dependency: no such job"));
  broker_.watch_jobs = [](const auto&, const auto&) { return absl::OkStatus(); };
  EXPECT_THAT(Run({"sbatch", "-d", "after:8", script}).err,
              HasSubstr("--dependency: job 8 has no number of Slurm's yet"));
  EXPECT_EQ(submitted_.size(), 2u);
}

// As Slurm 24.11 does it; 22.05 takes afterok and afternotok for fulfilled, too.
TEST_F(SlurmVerbsTest, ADependencyOnAJobThatIsNotThereIsFulfilledUnlessItAsksHowItEnded) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  for (const char* type : {"after", "afterany", "aftercorr"}) {
    submitted_.clear();
    const Outcome outcome = Run({"sbatch", "-d", fmt::format("{}:99,afterok:7", type), script});
    ASSERT_EQ(submitted_.size(), 1u) << outcome.err;
    EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "afterok:4711");
    EXPECT_THAT(outcome.err,
                HasSubstr(fmt::format("there is no job 99 (any more), so {}:99", type)));
  }
  submitted_.clear();
  EXPECT_EQ(Run({"sbatch", "-d", "afterany:99", script}).code, 0);
  EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "");
  EXPECT_EQ(Run({"sbatch", "-d", "afternotok:99", script}).code, 1);
}

TEST_F(SlurmVerbsTest, MusterWaitsForEndsWhereSlurmCannot) {
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
  // Returns "8 SUCCEEDED" as depends_on has it, or what the command says.
  const auto sent_for = [&](const std::string& dependency) {
    submitted_.clear();
    const Outcome outcome = Run({"sbatch", "-d", dependency, script});
    if (submitted_.empty()) return outcome.err;
    EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "") << dependency;
    EXPECT_THAT(submitted_[0].spec().placement().clusters(), IsEmpty());
    std::string sent;
    for (const v1::JobDependency& one : submitted_[0].spec().depends_on())
      sent += fmt::format("{} {};", one.job_id(), v1::JobOutcome_Name(one.outcome()).substr(12));
    return sent;
  };
  jobs_[1].mutable_runs(0)->set_cluster("kube");
  const absl::Time start = absl::Now();
  EXPECT_EQ(sent_for("afterok:8"), "8 SUCCEEDED;");
  EXPECT_EQ(sent_for("afternotok:8"), "8 FAILED;");
  EXPECT_EQ(sent_for("afterany:8"), "8 ENDED;");
  EXPECT_EQ(sent_for("afterok:7:8"), "7 SUCCEEDED;8 SUCCEEDED;") << "Slurm may forget job 7";
  EXPECT_EQ(sent_for("afterany:8,afterok:8,afterany:99"), "8 SUCCEEDED;");
  const std::string is_kube =
      "job 8 is on cluster kube, which is of kind kubernetes, and only Slurm";
  for (const char* other : {"after:8", "afterok:8?afterok:7", "afterok:8,afternotok:8"})
    EXPECT_THAT(sent_for(other), HasSubstr(is_kube)) << other;
  EXPECT_THAT(sent_for("after:8"), HasSubstr("once job 8 is RUNNING"));
  jobs_[1].set_state(v1::JOB_STATE_QUEUED);
  jobs_[1].clear_runs();
  jobs_[1].set_held(true);
  EXPECT_EQ(sent_for("afterok:8"), "8 SUCCEEDED;");
  EXPECT_THAT(sent_for("after:8"),
              HasSubstr("job 8 is held, and no cluster has it, so that Slurm cannot wait for it; "
                        "let it go first (muster release 8)"));
  EXPECT_LT(absl::Now() - start, kMaxNumberWait / 2) << "none of them waits";
  // It may get a cluster any moment.
  jobs_[1].set_held(false);
  *jobs_[1].mutable_state_reason() =
      client::Because("cluster \"lab\": the job fits, but the cluster's agent is not connected");
  EXPECT_EQ(sent_for("afterok:8"), "8 SUCCEEDED;");
  EXPECT_THAT(
      sent_for("after:8"),
      HasSubstr(
          "job 8 is QUEUED, and no cluster has it, so that Slurm cannot wait for it "
          "(cluster \"lab\": the job fits, but the cluster's agent is not connected); submit"));
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
  EXPECT_EQ(sent_for("afterok:7"), "");
  EXPECT_EQ(submitted_[0].spec().depends_on(0).job_id(), 7u) << "Muster follows its retries";
}

TEST_F(SlurmVerbsTest, OneOfSeveralConditionsIsEnoughForADependencyWithQuestionMarks) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  const auto sent_for = [&](const std::string& dependency) {
    submitted_.clear();
    const Outcome outcome = Run({"sbatch", "-d", dependency, script});
    return submitted_.empty() ? outcome.err : submitted_[0].spec().slurm().dependency();
  };
  *jobs_[1].add_runs() = jobs_[0].runs(0);
  jobs_[1].mutable_runs()->rbegin()->set_external_id("4712");
  EXPECT_EQ(sent_for("afterok:7?afterany:8"), "afterok:4711?afterany:4712");
  EXPECT_EQ(sent_for("afterok:7:8?afterany:8"), "afterok:4711?afterok:4712?afterany:4712");
  jobs_[1].set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(sent_for("afterok:7?afterok:8"), "afterok:4711") << "the other one never will be";
  EXPECT_EQ(sent_for("afterok:7?afterany:8"), "") << "one is fulfilled";
  EXPECT_THAT(sent_for("afterok:8?afterok:8"), HasSubstr("job 8 has ended as FAILED"));
  EXPECT_THAT(sent_for("afterok:7?afterok:99"), HasSubstr("no such job"));
}

TEST_F(SlurmVerbsTest, ASingletonWaitsForTheUsersJobsOfItsNameThatHaveNotEnded) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  const std::string me = getpwuid(geteuid())->pw_name;
  const auto sent_for = [&](const std::string& dependency) {
    submitted_.clear();
    const Outcome outcome = Run({"sbatch", "-J", "mine", "-d", dependency, script});
    return submitted_.empty() ? outcome.err : submitted_[0].spec().slurm().dependency();
  };
  EXPECT_EQ(sent_for("singleton"), "");
  jobs_[0].set_user(me);
  jobs_[0].set_name("mine");
  EXPECT_EQ(sent_for("singleton"), "afterany:4711");
  EXPECT_THAT(filter_, HasSubstr("state = QUEUED OR"));
  EXPECT_EQ(sent_for("afterok:7,singleton"), "afterok:4711,afterany:4711");
  jobs_[0].set_user("somebody");
  EXPECT_EQ(sent_for("singleton"), "");
  EXPECT_EQ(sent_for("afterok:7?singleton"), "") << "nothing is waited for";
}

// The broker gives numbers in a row, from 42 on, and has the jobs then.
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
            "sbatch: Job to start at " +
                absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(1'772'366'400),
                                 absl::LocalTimeZone()) +
                " on nodes n1 of cluster lab\n");
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
