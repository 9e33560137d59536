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
#include "tests/unit/clients/slurm_verbs_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The user who runs the tests.
std::string OwnName() { return getpwuid(geteuid())->pw_name; }

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
  EXPECT_EQ(with({"-n", "all"}), "") << "a name like any other";
  EXPECT_EQ(with({"-M", "all"}), second + first);
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
  *jobs_[1].mutable_state_reason() = client::Because("held by bob", v1::STATE_REASON_CODE_HELD);
  v1::Run& run = *jobs_[1].mutable_runs(0);
  *run.mutable_state_reason() = client::SlurmSays("JobHeldUser");
  EXPECT_EQ(Run({"squeue", "-ho", "%i %r", "-Si"}).out, "7 MusterQueue\n8 JobHeldUser\n");
  // A hold that was asked for and that the cluster has not carried out.
  *run.mutable_state_reason() = client::Because("Unschedulable: no node; the hold waits");
  run.mutable_state_reason()->set_scheduler_reason("Unschedulable");
  EXPECT_EQ(Run({"squeue", "-ho", "%i %r", "-Si"}).out, "7 MusterQueue\n8 Unschedulable\n");
  jobs_[1].set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Run({"squeue", "-j8", "-ho", "%i %r"}).out, "8 JobHeldUser\n");
}

TEST_F(SlurmVerbsTest, AReasonOfKubernetesIsItsWordASentenceMustersAndNoneIsLeftOut) {
  const auto shown = [&](const std::string& word, const std::string& reason) {
    *jobs_[1].mutable_state_reason() = client::Because(reason);
    jobs_[1].mutable_state_reason()->set_scheduler_reason(word);
    return Run({"squeue", "-h", "-j8", "-o", "%i %R"}).out;
  };
  EXPECT_EQ(shown("Unschedulable", "0/2 nodes are available"), "8 (Unschedulable)\n");
  EXPECT_EQ(shown("", "Unschedulable: 0/2 nodes are available"), "8 (SeeMusterWhy)\n")
      << "nobody looks for words in a sentence";
  EXPECT_EQ(shown("job requeued in held state", "requeued and held"), "8 (SeeMusterWhy)\n");
  EXPECT_EQ(shown("", ""), "8\n");
}

TEST_F(SlurmVerbsTest, SqueueSaysWhichUserNobodyKnows) {
  const Outcome outcome = Run({"squeue", "-h", "-u", "bob,root,no-such-user", "-o", "%u"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "bob\n") << "the broker knows him";
  EXPECT_EQ(outcome.err, "squeue: error: Invalid user: no-such-user\n");
}

TEST_F(SlurmVerbsTest, AProcessOfAMachineIsNoNumberOfSlurms) {
  broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse response;
    *response.add_clusters() = Lab();
    response.mutable_clusters(0)->set_kind(v1::CLUSTER_KIND_MACHINES);
    return response;
  };
  EXPECT_EQ(Run({"squeue", "-h", "-j", "7", "-o", "%A"}).out, "N/A\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "JobID,JobIDRaw"}).out, "7|\n");
}

TEST_F(SlurmVerbsTest, WhatCannotBeHonouredIsRefusedByName) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"squeue", "--json"}, "--json is not taken; use: muster list -o json"},
      {{"squeue", "-i5"}, "--iterate is not taken"},
      {{"squeue", "-o", "%X"}, "\"%X\" is not a column that muster has"},
      {{"squeue", "-t", "bogus"}, "Invalid job state specified: \"bogus\""},
      {{"squeue", "-j", "7_x"}, "Invalid job id specified: \"7_x\""},
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

TEST_F(SlurmVerbsTest, SinfoShowsOtherKindsWhereNoClusterIsSlurm) {
  v1::ListClustersResponse clusters;
  for (const char* name : {"kube", "lab"}) {
    *clusters.add_clusters() = Lab();
    clusters.mutable_clusters()->rbegin()->set_name(name);
    clusters.mutable_clusters()->rbegin()->set_kind(v1::CLUSTER_KIND_KUBERNETES);
  }
  broker_.list_clusters = [&](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    return clusters;
  };
  broker_.describe_cluster = [](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return Details();
  };
  const std::string all = Run({"sinfo"}).out;
  EXPECT_THAT(all, HasSubstr("CLUSTER: kube\n"));
  EXPECT_THAT(all, HasSubstr("CLUSTER: lab\n"));
  clusters.mutable_clusters(1)->set_kind(v1::CLUSTER_KIND_SLURM);
  const std::string slurm = Run({"sinfo"}).out;
  EXPECT_THAT(slurm, HasSubstr("gpu"));
  EXPECT_THAT(slurm, Not(HasSubstr("CLUSTER")));
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

TEST_F(SlurmVerbsTest, SinfoHasSlurmsWordsForTheStatesOfOtherKinds) {
  v1::DescribeClusterResponse response = Details();
  broker_.describe_cluster = [&](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return response;
  };
  v1::Node& node = *response.mutable_details()->mutable_nodes(0);
  const auto state_of = [&](v1::NodeCondition condition, uint32_t used) {
    node.set_state("in the agent's words");
    node.set_condition(condition);
    node.set_used_cpus(used);
    return Run({"sinfo", "-hp", "cpu", "-o", "%T %t"}).out;
  };
  EXPECT_EQ(state_of(v1::NODE_CONDITION_READY, 0), "idle idle\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_READY, 3), "mixed mix\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_READY, 8), "allocated alloc\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_CORDONED, 0), "drained drain\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_CORDONED, 3), "draining drng\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_DOWN, 0), "down down\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_FAILING, 0), "failing failg\n");
  v1::Pool& pool = *response.mutable_details()->mutable_pools(1)->mutable_now();
  pool.set_available(false);
  pool.set_state("missing");
  EXPECT_THAT(Run({"sinfo", "-hp", "cpu"}).out, HasSubstr("cpu  down "));
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
