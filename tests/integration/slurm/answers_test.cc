// Tests the answers to people about a real cluster: a preflight, its details, a plan; and runs that
// are held.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agents/slurm/fields.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kNewToken[] = "scontrol token username=slurmtest lifespan=7200";

class SlurmAnswersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster("--nodes 2 --gpus 2"); }
  static void TearDownTestSuite() { delete cluster_; }

  static v1::ClusterChecks Check(const SlurmConfig& config) {
    const v1::ClusterChecks checks = CreateSlurmBackend(config, cluster_->directory())->Check();
    for (const v1::ClusterCheck& check : checks.checks())
      EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
    return checks;
  }
  static const v1::ClusterCheck& Line(const v1::ClusterChecks& checks, const std::string& subject) {
    for (const v1::ClusterCheck& check : checks.checks()) {
      if (check.subject().find(subject) != std::string::npos) return check;
    }
    ADD_FAILURE() << "no line about " << subject << " in " << checks.DebugString();
    return v1::ClusterCheck::default_instance();
  }
  // Returns the agent of a host without Slurm's commands. Its file has what this one prints as
  // root.
  static SlurmConfig WithoutCommands(const std::string& token_command) {
    SlurmConfig config = cluster_->Config();
    config.bin_dir = "/nonexistent";
    config.rest_token_file = cluster_->directory() + "/token";
    const std::string token = cluster_->AsRoot(token_command);
    Root().Run(fmt::format("install -m 600 -o {} /dev/null {}", kTestUser, config.rest_token_file));
    std::ofstream(config.rest_token_file) << token;
    return config;
  }
  static size_t JobsInQueue() { return Lines(cluster_->AsRoot("squeue -h -t PD,R -o %i")).size(); }
  static std::string ReasonOf(const std::string& id) {
    return std::string(Lines(cluster_->AsRoot("squeue -h -o %r -j " + id)).front());
  }

  static TestCluster* cluster_;
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmAnswersTest::cluster_ = nullptr;

TEST_F(SlurmAnswersTest, APreflightOfAGoodClusterFailsNowhereAndSaysWhatItSaw) {
  SlurmConfig config = cluster_->Config();
  config.image_dir = cluster_->runs() + "/images";
  const v1::ClusterChecks checks = Check(config);
  for (const v1::ClusterCheck& check : checks.checks()) {
    EXPECT_NE(check.result(), v1::CHECK_RESULT_FAIL) << check.DebugString();
    EXPECT_THAT(check.seen(), Not(IsEmpty())) << check.DebugString();
  }
  EXPECT_THAT(Line(checks, "slurmctld").seen(), HasSubstr("is UP"));
  EXPECT_THAT(Line(checks, "version").seen(), HasSubstr("cluster lab"));
  EXPECT_THAT(Line(checks, "accounts").seen(), HasSubstr("account test"));
  EXPECT_THAT(Line(checks, "partition debug").seen(), HasSubstr("2 of 2 nodes take work"));
  EXPECT_THAT(Line(checks, "partition gpu").seen(), HasSubstr("4 GPUs h100"));
  EXPECT_EQ(Line(checks, "slurmctld's clock").result(), v1::CHECK_RESULT_OK);
  // This cluster has no Pyxis.
  EXPECT_EQ(Line(checks, "Pyxis").result(), v1::CHECK_RESULT_WARN);
  EXPECT_EQ(Line(checks, "registry credentials").result(), v1::CHECK_RESULT_SKIPPED);
}

TEST_F(SlurmAnswersTest, ARunDirectoryThatCannotBeWrittenFails) {
  SlurmConfig config = cluster_->Config();
  config.run_dir = "/proc/muster";
  const v1::ClusterChecks checks = Check(config);
  EXPECT_EQ(Line(checks, "run_dir").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(checks, "run_dir").remedy(), HasSubstr("slurm.run_dir"));
  EXPECT_EQ(Line(checks, "slurmctld").result(), v1::CHECK_RESULT_OK) << "the rest is looked at";
}

TEST_F(SlurmAnswersTest, WithoutSlurmdbdThePreflightWarnsAndSkipsAccounts) {
  cluster_->Control("stop", "slurmdbd");
  const v1::ClusterChecks checks = Check(cluster_->Config());
  cluster_->Control("start", "slurmdbd");
  EXPECT_EQ(Line(checks, "slurmdbd").result(), v1::CHECK_RESULT_WARN);
  EXPECT_EQ(Line(checks, "accounts").result(), v1::CHECK_RESULT_SKIPPED);
  if (cluster_->has_typed_rest()) {
    EXPECT_THAT(Line(checks, "partitions").seen(), HasSubstr("Slurmdb query failed"))
        << "this slurmrestd asks slurmdbd before all else";
  } else {
    EXPECT_EQ(Line(checks, "partition debug").result(), v1::CHECK_RESULT_OK);
  }
}

TEST_F(SlurmAnswersTest, WithoutMungeNothingOfSlurmIsAsked) {
  cluster_->Control("stop", "munged");
  const v1::ClusterChecks checks = Check(cluster_->Config());
  cluster_->Control("start", "munged");
  EXPECT_EQ(Line(checks, "munge").result(), v1::CHECK_RESULT_FAIL) << checks.DebugString();
  EXPECT_EQ(Line(checks, "slurmctld").result(), v1::CHECK_RESULT_SKIPPED);
  EXPECT_EQ(Line(checks, "accounts and partitions").result(), v1::CHECK_RESULT_SKIPPED);
  EXPECT_EQ(Line(checks, "run_dir").result(), v1::CHECK_RESULT_OK);
}

TEST_F(SlurmAnswersTest, ADirectoryOfCommandsThatHasNoneFails) {
  SlurmConfig config = cluster_->Config();
  config.bin_dir = "/nonexistent";
  const v1::ClusterChecks checks = Check(config);
  EXPECT_EQ(Line(checks, "Slurm's commands").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(checks, "Slurm's commands").seen(), HasSubstr("sbatch"));
}

TEST_F(SlurmAnswersTest, AJobThatHasAGpuShowsItAsUsed) {
  v1::JobSpec spec = ScriptSpec("sleep 300");
  spec.mutable_resources()->add_gpus()->set_count_millis(1000);
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  absl::StatusOr<v1::ClusterDetails> details;
  // Slurm takes a moment to clean up after the jobs of other tests, and lends no GPU of theirs
  // meanwhile.
  WaitFor("the GPUs of jobs that have ended", [&] {
    details = backend_->Describe(/*with_jobs=*/true);
    return details.ok() && details->pools(0).free_gpus().at("h100") == 3;
  });
  ASSERT_TRUE(details.ok()) << details.status();
  uint32_t used = 0;
  for (const v1::Node& node : details->nodes()) {
    EXPECT_EQ(node.gpus().at("h100"), 2u);
    used += node.used_gpus().at("h100");
  }
  EXPECT_EQ(used, 1u);
  const v1::PoolLoad& debug = details->pools(0);
  EXPECT_EQ(debug.now().name(), "debug");
  EXPECT_EQ(debug.free_gpus().at("h100"), 3u);
  EXPECT_EQ(debug.own_running_jobs(), 1u);
  EXPECT_EQ(debug.running_jobs(), 1u);
  const uint64_t looks = backend_->SchedulerCalls()["squeue"];
  const auto without_jobs = backend_->Describe(/*with_jobs=*/false);
  ASSERT_TRUE(without_jobs.ok()) << without_jobs.status();
  EXPECT_EQ(without_jobs->pools(0).running_jobs(), 0u);
  EXPECT_EQ(without_jobs->pools(0).free_gpus().at("h100"), 3u);
  EXPECT_EQ(backend_->SchedulerCalls()["squeue"], looks);
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

TEST_F(SlurmAnswersTest, APlanHasTheScriptAndAnEstimateAndLeavesNothing) {
  ASSERT_TRUE(backend_->Inventory().ok());
  const size_t jobs = JobsInQueue();
  v1::JobSpec spec = ScriptSpec("echo planned");
  spec.mutable_slurm()->set_partition("gpu");
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->submission(), HasSubstr("# sbatch "));
  EXPECT_THAT(plan->submission(), HasSubstr("--partition=gpu"));
  EXPECT_THAT(plan->shared(), HasSubstr("#!/bin/bash"));
  EXPECT_THAT(plan->submission(), HasSubstr("echo planned"));
  const v1::ClusterCheck& estimate = plan->checks(plan->checks_size() - 1);
  if (cluster_->is_over_rest()) {
    EXPECT_EQ(estimate.result(), v1::CHECK_RESULT_SKIPPED);
    EXPECT_THAT(estimate.seen(), HasSubstr("nothing like sbatch --test-only"));
  } else {
    EXPECT_TRUE(plan->has_estimated_start_time()) << plan->DebugString();
    EXPECT_THAT(plan->nodes(), ElementsAre(testing::AnyOf("n1", "n2")));
    EXPECT_EQ(estimate.result(), v1::CHECK_RESULT_OK) << estimate.DebugString();
  }
  for (const v1::ClusterCheck& check : plan->checks()) {
    if (&check == &estimate) continue;
    EXPECT_EQ(check.result(), v1::CHECK_RESULT_OK) << check.DebugString();
  }
  EXPECT_EQ(JobsInQueue(), jobs);
  EXPECT_FALSE(fs::exists(cluster_->runs() + "/plan-1-1"));
}

TEST_F(SlurmAnswersTest, AJobWithAnImageIsRefusedWhereThereIsNoPyxis) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.set_image("docker.io/library/busybox:1");
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *NewRun(spec).handle.assignment);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("no Pyxis"));
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto image = std::find_if(plan->checks().begin(), plan->checks().end(),
                                  [](const auto& check) { return check.subject() == "image"; });
  ASSERT_NE(image, plan->checks().end());
  EXPECT_EQ(image->result(), v1::CHECK_RESULT_FAIL) << image->DebugString();
}

TEST_F(SlurmAnswersTest, APlanOfWhatSlurmWouldRefuseSaysWhy) {
  ASSERT_TRUE(backend_->Inventory().ok());
  v1::JobSpec spec = ScriptSpec("true");
  // Refusals of slurmrestd cannot be asked for in advance, except for options that it has no field
  // for.
  const char* const words = cluster_->is_over_rest() ? "--contiguous" : "no such partition";
  if (cluster_->is_over_rest()) spec.mutable_slurm()->add_extra_options("--contiguous");
  spec.mutable_slurm()->set_partition("nosuch");
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const v1::ClusterCheck& test = plan->checks(plan->checks_size() - 1);
  EXPECT_EQ(test.result(), v1::CHECK_RESULT_FAIL) << test.DebugString();
  EXPECT_THAT(test.seen(), HasSubstr(words));
  spec.mutable_slurm()->clear_extra_options();
  spec.mutable_slurm()->set_partition("short");
  spec.mutable_time_limit()->set_seconds(7200);
  const auto too_long = backend_->Plan(spec, "ada");
  EXPECT_EQ(too_long->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(too_long->checks(0).seen(), HasSubstr("partition short"));
}

TEST_F(SlurmAnswersTest, ARunIsHeldAndReleasedAndEachTwiceDoesNoHarm) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_slurm()->add_extra_options("--begin=now+1hour");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  for (const bool held : {true, true, false, false}) {
    ASSERT_TRUE(HoldOne(*backend_, run.handle, held).ok());
    EXPECT_EQ(ReasonOf(run.handle.external_id) == "JobHeldUser", held);
  }
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_TRUE(HoldOne(*backend_, run.handle, true).ok()) << "it has ended";
}

TEST_F(SlurmAnswersTest, AHeldAssignmentDoesNotStartBeforeItsRelease) {
  TestRun run = NewRun(ScriptSpec("true"));
  auto held = std::make_shared<agent::v1::Assignment>(*run.handle.assignment);
  held->set_held(true);
  run.handle.assignment = held;
  Launch(*backend_, &run);
  EXPECT_EQ(ReasonOf(run.handle.external_id), "JobHeldUser");
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  EXPECT_THAT(run.last.reason.message(), HasSubstr("held"));
  ASSERT_TRUE(HoldOne(*backend_, run.handle, false).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
}

// The OverRest tests are for MUSTER_TEST_OVER_REST=1 alone.
TEST_F(SlurmAnswersTest, OverRestNothingOfSlurmTakesItsCommands) {
  SlurmConfig config = WithoutCommands(kNewToken);
  config.image_dir = cluster_->runs() + "/images";
  const v1::ClusterChecks checks = Check(config);
  for (const v1::ClusterCheck& check : checks.checks()) {
    EXPECT_NE(check.result(), v1::CHECK_RESULT_FAIL) << check.DebugString();
    EXPECT_THAT(check.seen(), Not(IsEmpty())) << check.DebugString();
  }
  for (const char* subject : {"token", "slurmrestd at http", "slurmctld", "slurmctld's clock",
                              "slurmdbd", "partition debug", "run_dir"}) {
    EXPECT_EQ(Line(checks, subject).result(), v1::CHECK_RESULT_OK) << subject;
  }
  EXPECT_THAT(Line(checks, "slurmrestd at").seen(),
              HasSubstr(cluster_->has_typed_rest() ? "v0.0.42 is spoken" : "v0.0.38 is spoken"));
  EXPECT_THAT(Line(checks, "accounts and QOS of").seen(), HasSubstr("account test"));
  EXPECT_EQ(Line(checks, "Pyxis").result(), v1::CHECK_RESULT_SKIPPED);
  EXPECT_THAT(Line(checks, "Pyxis").seen(), HasSubstr("not looked at"));
}

TEST_F(SlurmAnswersTest, OverRestEachThingInTheWayHasItsLine) {
  const v1::ClusterChecks foreign = Check(WithoutCommands(
      "echo eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDAsInN1biI6InNsdXJtdGVzdCJ9.c2ln"));
  EXPECT_EQ(Line(foreign, "token").result(), v1::CHECK_RESULT_OK) << "its key cannot be looked at";
  EXPECT_EQ(Line(foreign, "slurmctld").result(), v1::CHECK_RESULT_FAIL) << foreign.DebugString();
  EXPECT_THAT(Line(foreign, "slurmctld").remedy(), HasSubstr("token"));
  EXPECT_EQ(Line(foreign, "accounts and partitions").result(), v1::CHECK_RESULT_SKIPPED);
  EXPECT_EQ(Line(foreign, "run_dir").result(), v1::CHECK_RESULT_OK);

  const v1::ClusterChecks none = Check(WithoutCommands("true"));
  EXPECT_EQ(Line(none, "token").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_EQ(Line(none, "slurmrestd at").result(), v1::CHECK_RESULT_SKIPPED);

  SlurmConfig config = WithoutCommands(kNewToken);
  config.rest_url = "http://127.0.0.1:1";
  const v1::ClusterChecks away = Check(config);
  EXPECT_EQ(Line(away, "slurmrestd at").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(away, "slurmrestd at").remedy(), HasSubstr("slurm.rest_url"));
}

// slurmrestd tells the way of preemption of some partitions only, and flags up to v0.0.38.
bool IsTold(const std::string& limit) {
  return !limit.starts_with("PreemptMode=") &&
         (SlurmPrograms().empty() ||
          (limit != "RootOnly=YES" && limit != "ReqResv=YES" && limit != "ExclusiveUser=YES"));
}

TEST_F(SlurmAnswersTest, OverRestDetailsAreThoseOfTheCommands) {
  v1::JobSpec spec = ScriptSpec("sleep 300");
  spec.mutable_resources()->add_gpus()->set_count_millis(1000);
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_RUNNING);
  cluster_->AsRoot(
      "scontrol create partitionname=vip nodes=n1 allowaccounts=test,other denyqos=two "
      "allowgroups=slurmtest minnodes=2 maxcpuspernode=4 qos=one rootonly=yes exclusiveuser=yes "
      "state=drain maxtime=unlimited maxmempernode=2000 reqresv=yes");
  cluster_->AsRoot("scontrol update nodename=n2 state=drain reason='a bad fan'");
  cluster_->AsRoot("sbatch -D /tmp -o /dev/null -p debug,gpu --begin=now+1hour -a 1-3 --wrap=true");
  SlurmConfig by_command = cluster_->Config();
  by_command.rest_url.clear();
  auto wanted = cluster_->MakeBackend(by_command)->Describe(/*with_jobs=*/true);
  auto details = CreateSlurmBackend(WithoutCommands(kNewToken), cluster_->directory())
                     ->Describe(/*with_jobs=*/true);
  cluster_->AsRoot("scontrol delete partitionname=vip");
  cluster_->AsRoot("scontrol update nodename=n2 state=resume");
  cluster_->AsRoot("scancel -u root");
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  ASSERT_TRUE(details.ok()) << details.status();
  for (v1::ClusterDetails* one : {&*wanted, &*details}) {
    one->clear_observed_at();
    for (v1::PoolLoad& pool : *one->mutable_pools()) {
      if (cluster_->has_typed_rest()) pool.mutable_now()->clear_is_default();
      auto* limits = pool.mutable_limits();
      limits->erase(std::remove_if(limits->begin(), limits->end(),
                                   [](const std::string& limit) { return !IsTold(limit); }),
                    limits->end());
    }
  }
  EXPECT_EQ(details->DebugString(), wanted->DebugString());
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

}  // namespace
}  // namespace muster::slurm
