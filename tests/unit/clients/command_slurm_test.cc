// The verbs of Slurm's users, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "contract/errors.h"
#include "contract/task_array.h"
#include "tests/unit/clients/slurm_verbs_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the user who runs the tests.
std::string OwnName() { return getpwuid(geteuid())->pw_name; }

std::string LocalTimeOf(int64_t seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(seconds),
                          absl::LocalTimeZone());
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
      {{"squeue", "--yaml"}, "--yaml is not taken; use --json, or: muster list -o yaml"},
      {{"squeue", "-s"}, "--steps is not taken; Muster knows jobs and their runs"},
      {{"squeue", "-i", "0"}, "--iterate: \"0\" is no number of seconds"},
      {{"squeue", "-t", "bogus"}, "Invalid job state specified: \"bogus\""},
      {{"squeue", "-j", "7_x"}, "Invalid job id specified: \"7_x\""},
      {{"squeue", "--nosuch"}, "unrecognized option --nosuch"},
      {{"squeue", "7"}, "unrecognized argument \"7\""},
      {{"scancel"}, "No job identification provided"},
      {{"scancel", "-M", "lab"}, "No job identification provided"},
      {{"scancel", "-s", "99", "7"}, "Unknown job signal: \"99\""},
      {{"scancel", "-s", "USR1"}, "No job identification provided"},
      {{"scancel", "7.0"}, "Invalid job id specified"},
      {{"sacct", "-o", "Nosuch"}, "Invalid field requested: \"Nosuch\""},
      {{"sacct", "-S", "soon"}, "Invalid time specification: \"soon\""},
      {{"sinfo", "-t", "idle,bogus"}, "Bad state string: \"bogus\""},
      {{"sinfo", "-T"}, "--reservation is not taken"},
      {{"-o", "json", "squeue"}, "this verb takes Slurm's options, behind it"},
      {{"squeue", "-S", "?"}, "--sort: \"?\" is not a column that muster has"},
      {{"squeue", "-u", "\xff"}, "is not UTF-8"}};
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
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "7                 train        gpu                     8     FAILED      3:0 \n"
            "8                second        cpu                     8    PENDING      0:0 \n");
  EXPECT_THAT(filter_, HasSubstr("create_time >= 2025-12-02T"));
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "jobid,JobIDRaw,elapsed,NodeList,state"}).out,
            "7|4711|01:02:03|n[1-2]|FAILED\n");
  EXPECT_EQ(Run({"sacct", "-np", "-X", "--delimiter=;", "-j7,8", "-s", "PD", "-o", "User"}).out,
            "bob;\n");
  EXPECT_EQ(Run({"sacct", "-n", "-j8", "-o", "JobName%-9,User%4"}).out, "second     bob \n");
  EXPECT_THAT(Run({"sacct", "-e"}).out, HasSubstr("JobIDRaw"));
  EXPECT_THAT(Run({"sacct", "-na", "-S", "2026-06-01"}).out, Not(HasSubstr("train")))
      << "it had ended before";
}

TEST_F(SlurmVerbsTest, SacctHasAllColumnsAndNothingWhereNothingIsKnown) {
  jobs_[0].mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(2000);
  jobs_[0].mutable_spec()->mutable_resources()->set_memory_bytes(uint64_t{16} << 30);
  EXPECT_EQ(
      Run({"sacct", "-nP", "-j", "7", "-o", "CPUTime,CPUTimeRAW,AllocTRES,ReqTRES,AllocNodes"}).out,
      "08:16:24|29784|cpu=8,gres/gpu=4,mem=32G,node=2|cpu=8,gres/gpu=4,mem=32G,node=2|2\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "8", "-o", "CPUTime,AllocTRES,AllocNodes"}).out,
            "00:00:00||0\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "MaxRSS,TotalCPU,ConsumedEnergy,ReqCPUFreq"}).out,
            "|00:00:00||Unknown\n");
  const std::string all = Run({"sacct", "-P", "-l", "-j", "7"}).out;
  EXPECT_THAT(all, HasSubstr("JobID|JobIDRaw|JobName|Partition|MaxVMSize|"));
  EXPECT_THAT(all, HasSubstr("\n7|4711|train|gpu||||||"));
  EXPECT_THAT(
      Run({"sacct", "-e"}).out,
      HasSubstr(
          "Account             AdminComment        AllocCPUS           AllocNodes         \n"));
  EXPECT_EQ(Run({"sacct", "-j", "7", "-o", "ReservationId,JobID%3,State%-4,User%0"}).out,
            "Reservat Job Stat  \n-------- --- ----  \n           7 RUN+  \n")
      << "a heading is cut without a mark, a value with one";
}

TEST_F(SlurmVerbsTest, SacctHasWhatTheRunUsedAndWhatSlurmChose) {
  v1::Run& run = *jobs_[0].mutable_runs(0);
  run.mutable_usage()->mutable_user_cpu_time()->set_nanos(60'000'000);
  run.mutable_usage()->mutable_system_cpu_time()->set_nanos(212'900'000);
  run.mutable_usage()->set_max_rss_bytes(156655616);
  run.mutable_slurm_allocation()->set_partition("short");
  run.mutable_slurm_allocation()->set_account("lab");
  run.mutable_slurm_allocation()->set_qos("normal");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "UserCPU,SystemCPU,TotalCPU,MaxRSS"}).out,
            "00:00.060|00:00.212|00:00.272|152984K\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-j", "7", "-o", "Partition,Account,QOS"}).out,
            "short|lab|normal\n");
  EXPECT_EQ(Run({"squeue", "-h", "-j7", "-o", "%P %a %q"}).out, "short lab normal\n");
  EXPECT_EQ(Run({"squeue", "-h", "-A", "lab", "-o", "%i"}).out, "7\n");
  EXPECT_EQ(Run({"sacct", "-nP", "-a", "-S", "2026-01-01", "-r", "short", "-o", "JobID"}).out,
            "7\n");
  const std::string page = Run({"show", "7"}).out;
  EXPECT_THAT(page, HasSubstr("0.273 s of processor time (user 0.06 s, system 0.213 s), up to "
                              "149.3Mi of memory"));
  EXPECT_THAT(page, HasSubstr("partition short, account lab, QOS normal"));
}

TEST_F(SlurmVerbsTest, WhatSlurmChoseForAnEarlierRunIsNoMoreThanThat) {
  jobs_[0].set_state(v1::JOB_STATE_QUEUED);
  jobs_[0].mutable_runs(0)->mutable_slurm_allocation()->set_partition("short");
  EXPECT_EQ(Run({"squeue", "-h", "-j7", "-o", "%P"}).out, "gpu\n");
}

TEST_F(SlurmVerbsTest, SqueueTakesColumnsByTheirLongNames) {
  EXPECT_EQ(Run({"squeue", "-h", "-j7", "-O", "jobid:4,Name:.6| ,StateCompact:2,NumNodes:2"}).out,
            "7    train| R 2\n");
  EXPECT_EQ(Run({"squeue", "-j7", "-O", "TimeUsed,tres-alloc:30,Cluster:5"}).out,
            "TIME                TRES_ALLOC                    CLUST\n"
            "1:02:03             cpu=8,node=2                  lab\n");
}

TEST_F(SlurmVerbsTest, SqueueHasJsonInSlurmsForm) {
  const auto json = nlohmann::json::parse(Run({"squeue", "--json", "-S", "i"}).out);
  EXPECT_EQ(json["errors"].size(), 0u);
  ASSERT_EQ(json["jobs"].size(), 2u);
  const auto& first = json["jobs"][0];
  EXPECT_EQ(first["job_id"], 7);
  EXPECT_EQ(first["job_state"], "RUNNING");
  EXPECT_EQ(first["user_name"], "ada");
  EXPECT_EQ(first["nodes"], "n[1-2]");
  EXPECT_EQ(first["batch_host"], "n1");
  EXPECT_EQ(first["time_limit"], 90);
  EXPECT_EQ(first["start_time"], 1'772'366'400);
  EXPECT_EQ(first["array_task_id"], nullptr);
  EXPECT_EQ(first["slurm_job_id"], "4711");
  EXPECT_EQ(json["jobs"][1]["state_reason"], "Resources");
}

TEST_F(SlurmVerbsTest, SqueueWritesWaitingTasksOfAnArrayInOneLineUnlessAskedForEach) {
  jobs_.clear();
  for (uint32_t i = 0; i < 5; ++i) {
    v1::Job job =
        client::JobInState(42 + i, i == 0 ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_PENDING);
    job.mutable_spec()->mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = i < 4 ? i : 9, .count = 5, .max_id = 9, .place = i},
                           job.mutable_spec());
    *job.mutable_state_reason() = client::SlurmSays(i == 2 ? "Dependency" : "Resources");
    jobs_.push_back(job);
  }
  EXPECT_EQ(Run({"squeue", "-hS", "i", "-o", "%i %K %t %r"}).out,
            "42_0 0 R None\n42_[1,3,9] 1,3,9 PD Resources\n42_2 2 PD Dependency\n");
  EXPECT_EQ(Run({"squeue", "-hrS", "i", "-o", "%i"}).out, "42_0\n42_1\n42_2\n42_3\n42_9\n");
  EXPECT_EQ(Run({"squeue", "-hS", "i", "-O", "JobArrayID:12,JobID:4"}).out,
            "42_0        42\n42_[1-3,9]  42\n");
}

TEST_F(SlurmVerbsTest, SqueueLooksAgainUntilItIsStopped) {
  std::atomic<int> looks = 0;
  const auto list = broker_.list_jobs;
  broker_.list_jobs = [&, list](const v1::ListJobsRequest& request) {
    ++looks;
    return list(request);
  };
  Command command(broker_.address(), {"squeue", "-i", "1", "-o", "%i"});
  command.AwaitOut("JOBID\n8\n7\n\n");
  while (looks < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  command.Signal(SIGTERM);
  EXPECT_EQ(command.Finish().code, 128 + SIGTERM);
}

TEST_F(SlurmVerbsTest, TheJobsOfAQueryAreAskedForTogether) {
  std::atomic<int> questions = 0;
  const auto get = broker_.get_job;
  broker_.get_job = [&, get](const v1::GetJobRequest& request) {
    ++questions;
    return get(request);
  };
  EXPECT_THAT(Run({"squeue"}).out, HasSubstr("n[1-2]"));
  EXPECT_THAT(Run({"sacct", "-a", "-S", "2026-01-01", "-o", "JobIDRaw,NodeList"}).out,
              HasSubstr("n[1-2]"));
  EXPECT_EQ(questions, 0) << "not one after the other";
}

TEST_F(SlurmVerbsTest, SqueueNamesTheClustersThatWereAskedFor) {
  EXPECT_EQ(Run({"squeue", "-M", "lab,far", "-o", "%i"}).out,
            "CLUSTER: lab\nJOBID\n8\n7\nCLUSTER: far\nJOBID\n");
  jobs_[1].mutable_spec()->mutable_slurm()->set_reservation("maint");
  EXPECT_EQ(Run({"squeue", "-h", "-R", "maint", "-o", "%i"}).out, "8\n");
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
            "gpu*         up 1-00:00:00      1    mix n2\n"
            "gpu*         up 1-00:00:00      1   idle n1\n"
            "cpu          up   infinite      1   idle n1\n");
  EXPECT_EQ(Run({"sinfo", "-h", "-o", "%R %D %C %F %G"}).out,
            "gpu 3 6/10/8/24 1/1/1/3 gpu:h100:4\ncpu 1 0/8/0/8 0/1/0/1 gpu:h100:4\n");
  EXPECT_EQ(Run({"sinfo", "-N", "-h", "-p", "gpu", "-o", "%N %t %m"}).out,
            "n1 idle 16384\nn2 mix 16384\nn3 down* 16384\n");
  EXPECT_EQ(Run({"sinfo", "-Nho", "%N %R"}).out, "n1 gpu\nn1 cpu\nn2 gpu\nn3 gpu\n");
  EXPECT_EQ(Run({"sinfo", "-ht", "mix", "-o", "%N"}).out, "n2\n");
  EXPECT_EQ(Run({"sinfo", "-ht", "mix&drain", "-o", "%N"}).out, "");
  EXPECT_EQ(Run({"sinfo", "-hd", "-o", "%N"}).out, "n3\n");
  EXPECT_EQ(Run({"sinfo", "-hr", "-o", "%N"}).out, "n[1-2]\n");
  EXPECT_EQ(Run({"sinfo", "-hsp", "cpu"}).out, "cpu          up   infinite          0/1/0/1 n1\n");
}

TEST_F(SlurmVerbsTest, SinfoCountsANodeOnceUnlessAColumnTellsItsPartitionsApart) {
  v1::DescribeClusterResponse response = Details();
  v1::ClusterDetails& details = *response.mutable_details();
  for (v1::Node& node : *details.mutable_nodes()) {
    node.clear_pools();
    for (const char* pool : {"gpu", "cpu"}) node.add_pools(pool);
  }
  details.mutable_nodes(1)->set_memory_bytes(uint64_t{32} << 30);
  details.mutable_nodes(1)->set_gres("gpu:h100:4(S:0-1),lustre:1");
  details.add_pools()->set_pool("empty");
  details.mutable_pools(2)->mutable_now()->set_available(true);
  broker_.describe_cluster = [&](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return response;
  };
  EXPECT_EQ(Run({"sinfo", "-ho", "%D %N %m"}).out, "3 n[1-3] 16384+\n");
  EXPECT_EQ(Run({"sinfo", "-heo", "%N %m"}).out, "n2 32768\nn[1,3] 16384\n");
  EXPECT_EQ(Run({"sinfo", "-ho", "%R %D"}).out, "gpu 3\ncpu 3\nempty 0\n");
  std::string names;
  for (const char* name : {"z", "y", "x", "e", "d", "c", "b", "a"}) {
    details.add_pools()->set_pool(name);
    names += std::string(name) + "\n";
  }
  EXPECT_EQ(Run({"sinfo", "-ho", "%R"}).out, "gpu\ncpu\nempty\n" + names)
      << "in the cluster's own order";
  EXPECT_EQ(Run({"sinfo", "-hp", "empty", "-o", "%R %D %t %G"}).out, "empty 0 n/a (null)\n");
  EXPECT_EQ(Run({"sinfo", "-hn", "n2", "-o", "%G"}).out, "gpu:h100:4(S:0-1),lustre:1\n");
  EXPECT_THAT(Run({"sinfo", "-M", "lab"}).out, HasSubstr("CLUSTER: lab\nPARTITION"));
}

TEST_F(SlurmVerbsTest, SinfoListsEachReasonOnceWithWhoGaveItAndWhen) {
  v1::DescribeClusterResponse response = Details();
  v1::ClusterDetails& details = *response.mutable_details();
  for (int i = 1; i < 3; ++i) {
    v1::Node& node = *details.mutable_nodes(i);
    node.set_state(i == 1 ? "mixed+drain" : "idle+drain");
    node.set_reason("a bad fan in the left cabinet");
    node.set_reason_user("root");
    node.mutable_reason_time()->set_seconds(1'772'366'400);
    node.add_pools("cpu");
  }
  details.mutable_nodes(0)->set_reason("long over");
  broker_.describe_cluster = [&](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return response;
  };
  EXPECT_EQ(Run({"sinfo", "-R"}).out,
            "REASON               USER      TIMESTAMP           NODELIST\n"
            "a bad fan in the lef root      " +
                LocalTimeOf(1'772'366'400) + " n[2-3]\n");
  EXPECT_EQ(Run({"sinfo", "-ho", "%n %u %H", "-n", "n1"}).out, "n1 Unknown Unknown\n");
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
  EXPECT_EQ(state_of(v1::NODE_CONDITION_FAILING, 0), "fail fail\n");
  EXPECT_EQ(state_of(v1::NODE_CONDITION_FAILING, 3), "failing failg\n");
  v1::Pool& pool = *response.mutable_details()->mutable_pools(1)->mutable_now();
  pool.set_available(false);
  pool.set_state("missing");
  EXPECT_THAT(Run({"sinfo", "-hp", "cpu"}).out, HasSubstr("cpu        down "));
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
