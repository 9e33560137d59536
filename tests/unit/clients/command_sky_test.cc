// muster sky against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "clients/cpp/skypilot/task.h"
#include "contract/errors.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using client::Piece;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string OwnName() { return getpwuid(geteuid())->pw_name; }

// Clusters "box" and "lab". There are four on box: 1, which ran; 2, which runs; 3 of bob's, which
// runs; 4, which waits for it in the broker.
class SkyTest : public CommandTest {
 protected:
  SkyTest() {
    const v1::JobState states[] = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_RUNNING,
                                   v1::JOB_STATE_RUNNING, v1::JOB_STATE_QUEUED};
    for (uint64_t id = 1; id <= 4; ++id) {
      v1::Job& job = jobs_[id] = JobInState(id, states[id - 1]);
      job.set_user(id == 3 ? "bob" : OwnName());
      job.mutable_spec()->set_name("train");
      job.mutable_runs(0)->set_number(1);
      job.mutable_runs(0)->set_logs_complete(true);
    }
    jobs_[4].clear_cluster();
    jobs_[4].clear_runs();
    jobs_[4].mutable_spec()->mutable_placement()->add_clusters("box");
    broker_.list_jobs =
        [this](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
      EXPECT_TRUE(request.include_spec());
      filter_ = request.filter();
      const bool only_running = filter_.find("state = QUEUED") == filter_.npos &&
                                filter_.find("state = RUNNING") != filter_.npos;
      v1::ListJobsResponse response;
      for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
        if (only_running && job->second.state() != v1::JOB_STATE_RUNNING) continue;
        *response.add_jobs() = job->second;
        response.mutable_jobs()->rbegin()->clear_runs();
      }
      return response;
    };
    broker_.get_job =
        [this](const v1::GetJobRequest& request) -> absl::StatusOr<v1::GetJobResponse> {
      v1::GetJobResponse response;
      const auto job = jobs_.find(request.job_id());
      if (job == jobs_.end()) return absl::NotFoundError("no such job");
      *response.mutable_job() = job->second;
      return response;
    };
    broker_.list_clusters = [this](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
      v1::ListClustersResponse response;
      for (const v1::Cluster& cluster : clusters_) *response.add_clusters() = cluster;
      return response;
    };
    broker_.get_cluster =
        [this](const v1::GetClusterRequest& request) -> absl::StatusOr<v1::GetClusterResponse> {
      v1::GetClusterResponse response;
      for (const v1::Cluster& cluster : clusters_) {
        if (cluster.name() == request.name()) *response.mutable_cluster() = cluster;
      }
      if (!response.has_cluster()) return absl::NotFoundError("no such cluster");
      return response;
    };
    broker_.cancel_jobs =
        [this](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
      v1::CancelJobsResponse response;
      for (const uint64_t id : request.job_ids()) {
        canceled_.push_back(id);
        *response.add_jobs() = jobs_[id];
      }
      return response;
    };
    for (const char* name : {"box", "lab"}) {
      v1::Cluster& cluster = clusters_.emplace_back();
      cluster.set_name(name);
      cluster.set_kind(v1::CLUSTER_KIND_MACHINES);
      cluster.set_state(v1::CLUSTER_STATE_CONNECTED);
    }
  }

  Outcome Sky(std::vector<std::string> words) {
    words.insert(words.begin(), "sky");
    return Run(std::move(words));
  }

  std::string WriteNamed(const std::string& name, const std::string& text) {
    const std::string path =
        std::filesystem::path(broker_.address().substr(5)).parent_path() / name;
    std::ofstream(path) << text;
    return path;
  }

  // Returns the spec of the job that was submitted last.
  const v1::JobSpec& spec() {
    return submitted_.empty() ? v1::JobSpec::default_instance() : submitted_.back().spec();
  }

  std::map<uint64_t, v1::Job> jobs_;
  std::vector<v1::Cluster> clusters_;
  std::vector<uint64_t> canceled_;
  std::string filter_;
};

TEST_F(SkyTest, TheQueueHasTheFamiliarColumnsAndOnesOwnJobsAlone) {
  jobs_[1].clear_create_time();
  jobs_[1].mutable_start_time()->set_seconds(1000);
  jobs_[1].mutable_end_time()->set_seconds(1071);
  jobs_[2].set_cluster("lab");
  jobs_[4].clear_create_time();
  const Outcome outcome = Sky({"queue", "box"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Job queue of current user on cluster box\n"
                                      "ID  NAME   USER "));
  EXPECT_THAT(outcome.out, HasSubstr(" SUBMITTED  STARTED "));
  EXPECT_THAT(outcome.out,
              HasSubstr("DURATION  RESOURCES  STATUS     LOG                    MUSTER"));
  EXPECT_THAT(outcome.out,
              HasSubstr("1m 11s    1x[CPU:1]  SUCCEEDED  muster sky logs box 1  SUCCE"));
  EXPECT_THAT(outcome.out, HasSubstr("1x[CPU:1]  PENDING    muster sky logs box 4  QUEUED\n"));
  EXPECT_LT(outcome.out.find("logs box 4"), outcome.out.find("logs box 1")) << "the newest first";
  EXPECT_EQ(outcome.out.find("logs box 2"), std::string::npos) << "it is on lab";
  EXPECT_EQ(outcome.out.find("bob"), std::string::npos);
  EXPECT_THAT(Sky({"queue", "-u", "box"}).out,
              AllOf(HasSubstr("all users on cluster box"), HasSubstr("bob")));
}

TEST_F(SkyTest, TheQueueWithoutNamesIsThatOfAllClustersAndSkipsWhatHasEnded) {
  const Outcome outcome = Sky({"queue", "-s"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("on cluster box\n"), HasSubstr("on cluster lab\n")));
  EXPECT_THAT(filter_, HasSubstr("state = QUEUED OR"));
  EXPECT_THAT(Sky({"queue", "la*"}).out, StartsWith("Job queue of current user on cluster lab\n"));
  const Outcome unknown = Sky({"queue", "nosuch"});
  EXPECT_EQ(unknown.code, 0) << "as with SkyPilot";
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, HasSubstr("Cluster(s) not found: nosuch"));
}

TEST_F(SkyTest, ExecTakesACommandForBashToTheClusterThatIsNamed) {
  const Outcome outcome =
      Sky({"exec", "box", "-d", "--gpus", "H100:0.5", "--num-nodes", "2", "-n", "mine", "--env",
           "A=b=c", "--cpus", "4+", "--memory", "2", "--", "echo", "$A", "--lr"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Job submitted, ID: 42\n");
  EXPECT_THAT(outcome.err, HasSubstr("muster sky logs box 42"));
  EXPECT_EQ(spec().command().script(), client::skypilot::BashScript("echo $A --lr\n"));
  EXPECT_EQ(spec().name(), "mine");
  EXPECT_EQ(spec().nodes(), 2u);
  EXPECT_THAT(spec().placement().clusters(), ElementsAre("box"));
  EXPECT_EQ(spec().resources().gpus(0).count_millis(), 500u);
  EXPECT_EQ(spec().resources().cpu_millis(), 4000u);
  EXPECT_EQ(spec().resources().memory_bytes(), uint64_t{2} << 30) << "GiB";
  EXPECT_EQ(spec().env().at("A"), "b=c");
  EXPECT_EQ(Sky({"exec", "-c", "lab", "-d", "ls"}).code, 0);
  EXPECT_EQ(spec().name(), "sky-cmd");
  EXPECT_THAT(spec().placement().clusters(), ElementsAre("lab"));
}

TEST_F(SkyTest, AFileIsATaskIfItHoldsMoreThanAText) {
  const std::string task = WriteNamed("job.yaml", "name: t\nrun: echo\nresources: {memory: 2}\n");
  EXPECT_EQ(Sky({"exec", "box", "-d", task}).code, 0);
  EXPECT_EQ(spec().command().script(), client::skypilot::BashScript("echo"));
  EXPECT_EQ(spec().resources().memory_bytes(), uint64_t{2} << 30) << "GiB, as in a task";
  const std::string script = WriteNamed("train.sh", "python train.py\n");
  EXPECT_EQ(Sky({"exec", "box", "-d", script}).code, 0);
  EXPECT_EQ(spec().command().script(), client::skypilot::BashScript(script + "\n"));
  const Outcome missing = Sky({"exec", "box", "-d", "/nonexistent/task.yaml"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nonexistent/task.yaml"));
  const Outcome bad = Sky({"exec", "box", WriteNamed("bad.yml", "run: echo\nnodes: 2\n")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.yml:2:1: nodes"));
  const std::string group = WriteNamed(
      "group.yaml", "name: g\nexecution: parallel\n---\nname: a\nrun: x\n---\nname: b\nrun: x\n");
  EXPECT_THAT(Sky({"exec", "box", group}).err, HasSubstr("holds 2 tasks, and exec takes one"));
  EXPECT_EQ(submitted_.size(), 2u);
}

TEST_F(SkyTest, VariablesOfTheCommandLineWinOverFilesAndThoseOverTheTask) {
  const std::string task =
      WriteNamed("task.yaml", "envs: {A: task, B: task, C: task, D: }\nrun: echo\n");
  const std::string file = WriteNamed("vars.env", "B=file\nC=file\nD=file\n");
  const Outcome outcome = Command(broker_.address(),
                                  {"sky", "exec", "box", "-d", "--env", "C=line", "--env-file",
                                   file, "--env", "OWN", task},
                                  false, {"OWN=mine"})
                              .Finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::map<std::string, std::string> env(spec().env().begin(), spec().env().end());
  EXPECT_EQ(env, (std::map<std::string, std::string>{
                     {"A", "task"}, {"B", "file"}, {"C", "line"}, {"D", "file"}, {"OWN", "mine"}}));
  const Outcome unset = Sky({"exec", "box", "--env", "NOT_SET_HERE", "ls"});
  EXPECT_EQ(unset.code, 2);
  EXPECT_THAT(unset.err, HasSubstr("--env: NOT_SET_HERE is not set here"));
}

TEST_F(SkyTest, AValueBecomesASecretForTheJobAndIsInNoSpec) {
  std::map<std::string, std::string> set;
  broker_.set_secret = [&](const v1::SetSecretRequest& request) {
    EXPECT_TRUE(request.for_one_job());
    set[request.name()] = request.value();
    return v1::SetSecretResponse();
  };
  const std::string file = WriteNamed("secrets.env", "FILED=from-file\n");
  const Outcome outcome = Command(broker_.address(),
                                  {"sky", "exec", "box", "-d", "--secret", "TOKEN=s3cret",
                                   "--secret", "OWN", "--secret-file", file, "ls"},
                                  false, {"OWN=mine"})
                              .Finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::string> values;
  for (const v1::SecretUse& use : spec().secrets()) values[use.variable()] = set[use.name()];
  EXPECT_EQ(values, (std::map<std::string, std::string>{
                        {"FILED", "from-file"}, {"OWN", "mine"}, {"TOKEN", "s3cret"}}));
  EXPECT_EQ(spec().DebugString().find("s3cret"), std::string::npos);
  EXPECT_EQ(outcome.err.find("s3cret"), std::string::npos);
  const Outcome unset = Sky({"exec", "box", "-d", "--secret", "NOT_SET_HERE", "ls"});
  EXPECT_EQ(unset.code, 2);
  EXPECT_THAT(unset.err, HasSubstr("--secret: NOT_SET_HERE is not set here"));
}

TEST_F(SkyTest, ADryRunIsCheckedAndNotSubmitted) {
  const Outcome outcome = Sky({"exec", "box", "--dryrun", "ls"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(submitted_.back().validate_only());
  EXPECT_THAT(outcome.err, HasSubstr("nothing was submitted"));
}

TEST_F(SkyTest, ExecRefusesATaskForAnotherCluster) {
  const std::string task =
      WriteNamed("task.yaml", "run: echo\nresources: {infra: ssh/elsewhere}\n");
  const Outcome outcome = Sky({"exec", "box", task});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("do not match the existing cluster"),
                                 HasSubstr("Requested: elsewhere"), HasSubstr("Existing: box")));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(SkyTest, AJobThatTheBrokerRefusesIsAnErrorLikeAnyOther) {
  broker_.submit_job = [](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
                           "no cluster has 9 GPUs");
  };
  const Outcome outcome = Sky({"exec", "box", "--gpus", "H100:9", "ls"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no cluster has 9 GPUs"));
}

TEST_F(SkyTest, ExecFollowsAllRanksAndExitsByHowTheJobEnded) {
  jobs_[42] = JobInState(42, v1::JOB_STATE_FAILED);
  job_ = jobs_[42];
  broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    write(Piece(0, "out of " + std::to_string(request.rank()) + "\n", v1::LOG_END_COMPLETE));
    write(Piece(0, "err\n", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  const Outcome outcome = Sky({"exec", "box", "--num-nodes", "2", "ls"});
  EXPECT_EQ(outcome.code, 100);
  for (const char* line : {"(sky-cmd, rank=0) out of 0\n", "(sky-cmd, rank=1) out of 1\n",
                           "(sky-cmd, rank=0) err\n", "(sky-cmd, rank=1) err\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(outcome.err, HasSubstr("Job finished (status: FAILED)"));
}

TEST_F(SkyTest, ExecHasTheNameBeforeItsLinesThatTheBrokerGivesATaskWithoutOne) {
  jobs_[42] = JobInState(42, v1::JOB_STATE_SUCCEEDED);
  broker_.read_log = [](const v1::ReadLogRequest&, const auto& write) -> absl::Status {
    write(Piece(0, "hello\n", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  const std::string task = WriteNamed("t.yaml", "num_nodes: 2\nrun: echo hello");
  EXPECT_THAT(Sky({"exec", "box", task}).out, HasSubstr("(echo, rank=1) hello\n"));
}

TEST_F(SkyTest, AnInterruptOfLogsTellsHowToGoOn) {
  broker_.read_log = [](const v1::ReadLogRequest&, const auto& write) -> absl::Status {
    write(Piece(0, "begun\n"));
    while (write(Piece(6, ""))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  broker_.watch_jobs = [this](const v1::WatchJobsRequest&, const auto& write) -> absl::Status {
    write(client::Step(2, 3, v1::JOB_STATE_RUNNING));
    while (!stop_ && write(client::Heartbeat()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  Command command(broker_.address(), {"sky", "logs", "box", "2"});
  command.AwaitOut("begun");
  command.Signal(SIGINT);
  const Outcome outcome = command.Finish();
  stop_ = true;
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("the job goes on. Come back with: muster sky logs box 2\n"));
}

TEST_F(SkyTest, LogsTellByTheirCodeHowAJobStands) {
  const auto status = [this](const std::string& id) {
    return Sky({"logs", "box", id, "--status"});
  };
  EXPECT_EQ(status("1").code, 0);
  EXPECT_EQ(status("1").out, "Job 1: SUCCEEDED\n");
  EXPECT_EQ(status("2").code, 101);
  EXPECT_EQ(status("7").code, 102);
  jobs_[1].set_state(v1::JOB_STATE_CANCELED);
  EXPECT_EQ(status("1").code, 103);
  jobs_[1].set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(status("1").code, 100);
  jobs_[1].set_cluster("lab");
  EXPECT_EQ(status("1").code, 102);
  EXPECT_THAT(status("1").err, HasSubstr("it is on \"lab\""));
  EXPECT_EQ(Sky({"logs", "nosuch", "1"}).code, 1);
  EXPECT_EQ(Sky({"logs", "lab", "--status"}).code, 100) << "the latest of one's own there";
  jobs_.clear();
  EXPECT_EQ(Sky({"logs", "lab"}).code, 102);
}

TEST_F(SkyTest, LogsWithoutFollowingGiveWhatIsThereAndTheLastLines) {
  const std::string log = "one\ntwo\nthree\nfour";
  uint32_t tail = 0;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_FALSE(request.follow());
    tail = request.tail_lines();
    for (uint64_t at = 0; tail == 0 && at < log.size(); ++at) write(Piece(at, log.substr(at, 1)));
    if (tail > 0) {
      write(Piece(14, ""));
      write(Piece(0, "", v1::LOG_END_UNSPECIFIED, v1::LOG_STREAM_STDERR));
      write(Piece(14, log.substr(14)));
    }
    write(Piece(log.size(), "", v1::LOG_END_MORE_LATER));
    write(Piece(0, "", v1::LOG_END_MORE_LATER, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  EXPECT_EQ(Sky({"logs", "box", "2", "--no-follow"}).out, log);
  EXPECT_EQ(Sky({"logs", "box", "2", "--no-follow"}).code, 0) << "it still runs";
  EXPECT_EQ(Sky({"logs", "box", "2", "--no-follow", "--tail", "1"}).out, "four");
  EXPECT_EQ(tail, 1u);
  EXPECT_EQ(Sky({"logs", "box", "2", "--no-follow", "--tail=0"}).out, log);
  EXPECT_EQ(Sky({"logs", "box", "2", "--tail=x"}).code, 2);
  const Outcome queued = Sky({"logs", "box", "4", "--no-follow"});
  EXPECT_EQ(queued.code, 0);
  EXPECT_THAT(queued.err, HasSubstr("it has no log yet"));
}

TEST_F(SkyTest, CancelTakesTheLatestRunningJobOrNamedOnesOrAllOfOnesOwn) {
  const Outcome latest = Sky({"cancel", "box", "-y"});
  EXPECT_EQ(latest.code, 0) << latest.err;
  EXPECT_EQ(latest.out, "Cancelling job ID(s): 2\n");
  EXPECT_THAT(canceled_, ElementsAre(2));
  canceled_.clear();
  EXPECT_EQ(Sky({"cancel", "box", "-ay"}).code, 0);
  EXPECT_THAT(filter_, HasSubstr("state = QUEUED OR"));
  EXPECT_THAT(canceled_, ElementsAre(4, 2, 1)) << "what the broker says has not ended";
  canceled_.clear();
  EXPECT_EQ(Sky({"cancel", "box", "-uy"}).code, 0);
  EXPECT_THAT(canceled_, ElementsAre(4, 3, 2, 1));
  canceled_.clear();
  EXPECT_EQ(Sky({"cancel", "box", "4", "1", "9", "-y"}).code, 0);
  EXPECT_THAT(canceled_, ElementsAre(4)) << "1 has ended, and there is no 9";
}

TEST_F(SkyTest, CancelAsksFirstAndTakesNoAnswerForNo) {
  const Outcome outcome = Sky({"cancel", "box", "2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("Cancelling job 2 on cluster 'box'. Proceed? [Y/n]: Aborted!"));
  EXPECT_THAT(canceled_, IsEmpty());
}

TEST_F(SkyTest, WhatCannotBeCanceledIsSaidWithoutAnError) {
  const Outcome outcome = Sky({"cancel", "box", "1", "9", "-y"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "No jobs cancelled. They may be in terminal states.\n");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("job 1 SUCCEEDED"), HasSubstr("Job 9 not found")));
  jobs_[2].set_cluster("lab");
  EXPECT_THAT(Sky({"cancel", "box", "2", "-y"}).err, HasSubstr("it is on \"lab\""));
  EXPECT_THAT(canceled_, IsEmpty()) << "a job of another cluster is not this one's to cancel";
}

TEST_F(SkyTest, StatusIsUpOrNotKnown) {
  clusters_[1].set_state(v1::CLUSTER_STATE_DISCONNECTED);
  clusters_[1].set_kind(v1::CLUSTER_KIND_SLURM);
  v1::Cluster& busy = clusters_.emplace_back(clusters_[0]);
  busy.set_name("quay");
  busy.set_scheduler_error("no route");
  v1::NodeGroup* group = clusters_[0].mutable_inventory()->add_pools()->add_node_groups();
  group->set_count(2);
  group->set_cpus(16);
  group->set_memory_bytes(uint64_t{64} << 30);
  (*group->mutable_gpus())["H100"] = 8;
  const Outcome outcome = Sky({"status"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(
      outcome.out,
      "Clusters\n"
      "NAME  INFRA      RESOURCES                    STATUS  AUTOSTOP  LAUNCHED  MUSTER\n"
      "box   ssh/box    2x(cpus=16, mem=64, H100:8)  UP      -         -         0 active runs\n"
      "lab   slurm/lab  -                            INIT    -         -         its agent is "
      "not connected, last seen -\n"
      "quay  ssh/quay   -                            INIT    -         -         its scheduler "
      "does not answer: no route\n");
}

TEST_F(SkyTest, WhatIsNotTakenIsRefusedByNameWithWhatToDo) {
  const struct {
    std::vector<std::string> words;
    std::string told;
  } rows[] = {
      {{}, "name a command; there are exec"},
      {{"launch", "task.yaml"},
       "sky launch is not taken; clusters are there already; use: muster sky exec"},
      {{"jobs", "launch"}, "use: muster submit"},
      {{"exce"}, "sky has no command \"exce\""},
      {{"exec", "box"}, "name a cluster, and a task or a command"},
      {{"exec", "box", "--infra", "aws", "ls"}, "--infra is not taken; the cluster is"},
      {{"exec", "box", "python", "x.py", "--lr", "1"}, "options of a command go behind --"},
      {{"exec", "box", "--num-nodes", "0", "ls"},
       "--num-nodes: \"0\" is not a whole number of 1 to"},
      {{"exec", "box", "--gpus", "H100:1.5", "ls"}, "--gpus: "},
      {{"queue", "-o", "json"}, "use: muster list --cluster NAME -o json"},
      {{"logs", "box", "1", "-s"}, "use: muster logs ID > FILE"},
      {{"logs", "box", "1", "2"}, "one job at a time"},
      {{"logs", "box", "x"}, "\"x\" is not a job"},
      {{"logs"}, "name a cluster"},
      {{"cancel", "box", "1", "-a"}, "give either jobs or --all"},
      {{"cancel", "b*", "1"}, "name one cluster"},
      {{"cancel", "nosuch", "-a"}, "Cluster \"nosuch\" not found"},
      {{"status", "--ip"}, "--ip is not taken"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = Sky(row.words);
    EXPECT_EQ(outcome.code, 2) << row.told << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.told));
  }
  EXPECT_EQ(Run({"-o", "json", "sky", "queue"}).code, 2);
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(SkyTest, HelpNamesTheCommandsAndTheirOptions) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"sky", "--help"}, {"sky", "exec", "--help"}, {"help", "sky"}}) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("--skip-finished"), HasSubstr("--dryrun"),
                                   HasSubstr("101 if it has not ended")));
  }
}

}  // namespace
}  // namespace muster::cli
