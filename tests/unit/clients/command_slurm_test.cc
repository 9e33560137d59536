// The verbs of Slurm's users, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Who runs the tests.
std::string OwnName() { return getpwuid(geteuid())->pw_name; }

// Two jobs on a Slurm cluster "lab" with the partitions gpu and cpu, of the users ada and bob.
class SlurmVerbsTest : public CommandTest {
 protected:
  SlurmVerbsTest() {
    jobs_.push_back(JobInState(7, v1::JOB_STATE_RUNNING));
    jobs_.push_back(JobInState(8, v1::JOB_STATE_PENDING));
    for (v1::Job& job : jobs_) {
      job.set_cluster("lab");
      job.mutable_spec()->set_nodes(2);
      job.mutable_spec()->mutable_resources()->set_cpu_millis(4000);
      job.mutable_spec()->mutable_time_limit()->set_seconds(5400);
      job.mutable_spec()->mutable_slurm()->set_partition("gpu");
    }
    v1::Run& run = *jobs_[0].mutable_runs(0);
    run.set_cluster("lab");
    run.set_external_id("4711");
    run.add_nodes("n1");
    run.add_nodes("n2");
    jobs_[0].mutable_start_time()->set_seconds(1'772'366'400);
    jobs_[0].mutable_end_time()->set_seconds(1'772'366'400 + 3723);
    jobs_[1].set_user("bob");
    jobs_[1].set_name("second");
    jobs_[1].mutable_spec()->mutable_slurm()->clear_partition();
    jobs_[1].set_reason("waiting for free nodes, first in line (Resources)");
    broker_.list_jobs =
        [this](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
      v1::ListJobsResponse response;
      filter_ = request.filter();
      for (const v1::Job& job : jobs_) {
        *response.add_jobs() = job;
        response.mutable_jobs()->rbegin()->clear_runs();
      }
      return response;
    };
    broker_.get_job =
        [this](const v1::GetJobRequest& request) -> absl::StatusOr<v1::GetJobResponse> {
      for (const v1::Job& job : jobs_) {
        v1::GetJobResponse response;
        *response.mutable_job() = job;
        if (job.id() == request.job_id()) return response;
      }
      return absl::NotFoundError("no such job");
    };
    broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
      v1::ListClustersResponse response;
      *response.add_clusters() = Lab();
      return response;
    };
    broker_.get_cluster = [](const auto&) -> absl::StatusOr<v1::GetClusterResponse> {
      v1::GetClusterResponse response;
      *response.mutable_cluster() = Lab();
      return response;
    };
  }

  static v1::Cluster Lab() {
    v1::Cluster lab;
    lab.set_name("lab");
    lab.set_kind(v1::CLUSTER_KIND_SLURM);
    lab.set_state(v1::CLUSTER_STATE_CONNECTED);
    for (const char* name : {"cpu", "gpu"}) {
      v1::Pool* pool = lab.mutable_inventory()->add_pools();
      pool->set_name(name);
      pool->set_is_default(std::string(name) == "cpu");
    }
    return lab;
  }

  std::string WriteScript(const std::string& text) {
    const std::string path = WriteFile(text);
    const std::string script = std::filesystem::path(path).parent_path() / "train.sh";
    std::filesystem::rename(path, script);
    return script;
  }

  std::vector<v1::Job> jobs_;
  std::string filter_;
};

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
  EXPECT_EQ(spec.env().size(), 2u) << "nothing of the shell that is not named";
  EXPECT_EQ(spec.env().at("LR"), "0.1");
}

TEST_F(SlurmVerbsTest, SbatchAnswersInTheFormThatWasAskedFor) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  EXPECT_EQ(Run({"sbatch", "--parsable", script}).out, "42\n");
  EXPECT_EQ(Run({"-q", "sbatch", script}).out, "42\n");
  EXPECT_EQ(Run({"sbatch", "-M", "lab", script}).out, "Submitted batch job 42 on cluster lab\n");
  EXPECT_EQ(Run({"sbatch", "-M", "lab", "--parsable", script}).out, "42;lab\n");
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
  const Outcome array = Run({"sbatch", "--array=1-3", WriteScript("#!/bin/sh\ntrue\n")});
  EXPECT_EQ(array.code, 1);
  EXPECT_THAT(array.err, HasSubstr("--array=1-3 (command line): Muster takes no job arrays"));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(SlurmVerbsTest, SbatchSaysThatTheShellsVariablesStayIfTheyWereAskedFor) {
  const Outcome outcome = Run({"sbatch", "--export=ALL", WriteScript("#!/bin/sh\ntrue\n")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("do not travel with the job"));
}

TEST_F(SlurmVerbsTest, ADependencyOnAJobOfMustersGetsSlurmsNumberAndItsCluster) {
  const std::string script = WriteScript("#!/bin/sh\ntrue\n");
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:7", script}).code, 0);
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].spec().slurm().dependency(), "afterok:4711");
  EXPECT_THAT(submitted_[0].spec().placement().clusters(), ElementsAre("lab"));
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:7", "-M", "far", script}).err,
              HasSubstr("job 7 is on cluster lab, and this one is for far"));
  EXPECT_EQ(Run({"sbatch", "-d", "afterok:99", script}).code, 1);
  jobs_[1].set_state(v1::JOB_STATE_CANCELED);
  EXPECT_THAT(Run({"sbatch", "-d", "afterok:8", script}).err,
              HasSubstr("job 8 has no number of Slurm's yet"));
  EXPECT_EQ(submitted_.size(), 1u);
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

TEST_F(SlurmVerbsTest, SqueueHasTheFamiliarColumns) {
  const Outcome outcome = Run({"squeue"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "                 8       cpu   second      bob PD       0:00      2 (Resources)\n"
            "                 7       gpu    train      ada  R    1:02:03      2 n[1-2]\n");
  EXPECT_THAT(filter_, HasSubstr("state = QUEUED OR"));
}

TEST_F(SlurmVerbsTest, SqueueChoosesAndShowsAsItIsTold) {
  const std::vector<std::string> format = {"squeue", "-h", "-o", "%i|%A|%T|%l|%C|%P|%r"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = format;
    words.insert(words.end(), more.begin(), more.end());
    return Run(words).out;
  };
  const std::string first = "7|4711|RUNNING|1:30:00|8|gpu|None\n";
  const std::string second = "8|(null)|PENDING|1:30:00|8|cpu|Resources\n";
  EXPECT_EQ(with({}), second + first);
  EXPECT_EQ(with({"-S", "i"}), first + second);
  EXPECT_EQ(with({"--sort=-i"}), second + first);
  EXPECT_EQ(with({"-u", "bob"}), second);
  EXPECT_EQ(with({"-t", "r"}), first);
  EXPECT_EQ(with({"-p", "gpu"}), first);
  EXPECT_EQ(with({"-n", "second,third"}), second);
  EXPECT_EQ(with({"-j7,99"}), first);
  EXPECT_EQ(with({"-w", "n2"}), first);
  EXPECT_EQ(with({"-M", "elsewhere"}), "");
  EXPECT_EQ(with({"-t", "CD"}), "");
  EXPECT_EQ(with({"--start"}), second);
  EXPECT_EQ(Run({"squeue", "-j", "99"}).code, 1);
}

TEST_F(SlurmVerbsTest, JobsThatNoClusterHasAndThatAreHeldSaySo) {
  jobs_[0].set_state(v1::JOB_STATE_QUEUED);
  jobs_[0].clear_cluster();
  jobs_[1].set_held(true);
  EXPECT_EQ(Run({"squeue", "-ho", "%i %r", "-Si"}).out, "7 MusterQueue\n8 JobHeldUser\n");
}

TEST_F(SlurmVerbsTest, WhatCannotBeHonouredIsRefusedByName) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"squeue", "--json"}, "--json is not taken; use: muster list -o json"},
      {{"squeue", "-i5"}, "--iterate is not taken"},
      {{"squeue", "-o", "%K"}, "\"%K\" is not a column that muster has"},
      {{"squeue", "-t", "bogus"}, "Invalid job state specified: \"bogus\""},
      {{"squeue", "-j", "7_1"}, "Invalid job id specified: \"7_1\""},
      {{"squeue", "--nosuch"}, "unrecognized option --nosuch"},
      {{"squeue", "7"}, "unrecognized argument \"7\""},
      {{"scancel"}, "No job identification provided"},
      {{"scancel", "-M", "lab"}, "No job identification provided"},
      {{"scancel", "-s", "USR1", "7"}, "--signal is not taken; use scancel itself"},
      {{"scancel", "7.0"}, "Invalid job id specified"},
      {{"sacct", "-o", "MaxRSS"}, "Invalid field requested: \"MaxRSS\""},
      {{"sacct", "-S", "soon"}, "Invalid time specification: \"soon\""},
      {{"sacct", "-l"}, "--long is not taken"},
      {{"sinfo", "-T"}, "--reservation is not taken"},
      {{"-o", "json", "squeue"}, "this verb takes Slurm's options, behind it"},
      {{"squeue", "-u", "\xff"}, "is not UTF-8"},
      {{"sinfo", "-o", "%z"}, "\"%z\" is not a column"}};
  for (const auto& [words, says] : cases) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 2) << says;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

TEST_F(SlurmVerbsTest, ScancelNamesJobsOrChoosesThem) {
  std::vector<std::vector<uint64_t>> canceled;
  broker_.cancel_jobs =
      [&](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
    canceled.emplace_back(request.job_ids().begin(), request.job_ids().end());
    return v1::CancelJobsResponse();
  };
  EXPECT_EQ(Run({"scancel", "7", "99"}).out, "");
  EXPECT_EQ(Run({"scancel", "-u", "bob"}).code, 0);
  EXPECT_EQ(Run({"scancel", "--state=RUNNING", "--jobname", "train"}).code, 0)
      << "none is one's own";
  jobs_[0].set_user(OwnName());
  EXPECT_EQ(Run({"scancel", "--state=RUNNING", "--jobname", "train"}).code, 0);
  jobs_[0].set_user("ada");
  EXPECT_EQ(Run({"scancel", "-u", "ada", "8", "7"}).code, 0) << "both must fit";
  EXPECT_EQ(Run({"scancel", "-u", "nobody"}).code, 0);
  EXPECT_THAT(canceled,
              ElementsAre(ElementsAre(7u, 99u), ElementsAre(8u), ElementsAre(7u), ElementsAre(7u)));
}

TEST_F(SlurmVerbsTest, SacctShowsHowJobsEnded) {
  jobs_[0].set_state(v1::JOB_STATE_FAILED);
  jobs_[0].mutable_exit()->set_code(3);
  const Outcome table = Run({"sacct", "-a", "-S", "2026-01-01"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "       JobID    JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "           7      train        gpu                     8     FAILED      3:0 \n"
            "           8     second        cpu                     0    PENDING      0:0 \n");
  EXPECT_THAT(filter_, HasSubstr("create_time >= 2025-12-02T"));
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "jobid,JobIDRaw,elapsed,NodeList,state"}).out,
            "7|4711|01:02:03|n[1-2]|FAILED\n");
  EXPECT_EQ(Run({"sacct", "-np", "-X", "--delimiter=;", "-j7,8", "-s", "PD", "-o", "User"}).out,
            "bob;\n");
  EXPECT_EQ(Run({"sacct", "-n", "-j8", "-o", "JobName%-9,User%4"}).out, "second     bob \n");
  EXPECT_THAT(Run({"sacct", "-e"}).out, HasSubstr("JobIDRaw\n"));
  EXPECT_THAT(Run({"sacct", "-na", "-S", "2026-06-01"}).out, Not(HasSubstr("train")))
      << "it had ended before";
}

v1::DescribeClusterResponse Details() {
  v1::DescribeClusterResponse response;
  v1::ClusterDetails& details = *response.mutable_details();
  for (const char* name : {"gpu", "cpu"}) {
    v1::PoolLoad* pool = details.add_pools();
    pool->set_pool(name);
    pool->mutable_now()->set_state("up");
    pool->mutable_now()->set_available(true);
  }
  details.mutable_pools(0)->mutable_now()->set_is_default(true);
  details.mutable_pools(0)->mutable_now()->mutable_max_time_limit()->set_seconds(86400);
  for (const char* name : {"n1", "n2", "n3"}) {
    v1::Node* node = details.add_nodes();
    node->set_name(name);
    node->set_state("idle");
    node->set_cpus(8);
    node->set_memory_bytes(uint64_t{16} << 30);
    node->add_pools("gpu");
    (*node->mutable_gpus())["h100"] = 4;
  }
  details.mutable_nodes(1)->set_state("mixed");
  details.mutable_nodes(1)->set_used_cpus(6);
  details.mutable_nodes(2)->set_state("down*");
  details.mutable_nodes(2)->set_reason("power");
  details.mutable_nodes(0)->add_pools("cpu");
  return response;
}

TEST_F(SlurmVerbsTest, SinfoShowsPartitionsNodesAndGpus) {
  broker_.describe_cluster = [](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return Details();
  };
  const Outcome table = Run({"sinfo"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "gpu*         up 1-00:00:00      1  down* n3\n"
            "gpu*         up 1-00:00:00      1   idle n1\n"
            "gpu*         up 1-00:00:00      1    mix n2\n"
            "cpu          up   infinite      1   idle n1\n");
  EXPECT_EQ(Run({"sinfo", "-h", "-o", "%R %D %C %F %G"}).out,
            "gpu 3 6/10/8/24 1/1/1/3 gpu:h100:4\ncpu 1 0/8/0/8 0/1/0/1 gpu:h100:4\n");
  EXPECT_EQ(Run({"sinfo", "-N", "-h", "-p", "gpu", "-o", "%N %t %m"}).out,
            "n1 idle 16384\nn2 mix 16384\nn3 down* 16384\n");
  EXPECT_EQ(Run({"sinfo", "-Nho", "%N %R"}).out, "n1 gpu\nn1 cpu\nn2 gpu\nn3 gpu\n");
  EXPECT_EQ(Run({"sinfo", "-ht", "mix", "-o", "%N"}).out, "n2\n");
  EXPECT_EQ(Run({"sinfo", "-hR"}).out, "power n3\n");
  EXPECT_EQ(Run({"sinfo", "-hsp", "cpu"}).out, "cpu    up   infinite          0/1/0/1 n1\n");
}

TEST_F(SlurmVerbsTest, SinfoNamesTheClusterThatDoesNotAnswer) {
  broker_.describe_cluster = [](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return contract::Error(absl::StatusCode::kUnavailable, "NOT_CONNECTED", "its agent is away");
  };
  const Outcome outcome = Run({"sinfo"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "sinfo: error: cluster lab: its agent is away\n");
}

TEST_F(SlurmVerbsTest, EachHelpsWithAnExampleAndWhatItHonours) {
  for (const char* verb : {"sbatch", "squeue", "scancel", "sacct", "sinfo"}) {
    const Outcome outcome = RunCommand("", {verb, "--help"});
    EXPECT_EQ(outcome.code, 0) << verb;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("For example:\n  muster ") + verb));
    EXPECT_EQ(outcome.out, RunCommand("", {"help", verb}).out);
  }
}

}  // namespace
}  // namespace muster::cli
