// What people ask of a real cluster: a preflight, its details, a plan; and runs that are held.
#include <filesystem>

#include "agents/slurm/fields.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SlurmAnswersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster("--nodes 2 --gpus 2"); }
  static void TearDownTestSuite() { delete cluster_; }

  static v1::ClusterChecks Check(const SlurmConfig& config) {
    return CreateSlurmBackend(config, cluster_->directory())->Check();
  }
  static const v1::ClusterCheck& Line(const v1::ClusterChecks& checks, const std::string& subject) {
    for (const v1::ClusterCheck& check : checks.checks()) {
      if (check.subject().find(subject) != std::string::npos) return check;
    }
    ADD_FAILURE() << "no line about " << subject << " in " << checks.DebugString();
    return v1::ClusterCheck::default_instance();
  }
  static size_t JobsInQueue() { return Lines(cluster_->AsRoot("squeue -h -t PD,R -o %i")).size(); }
  static std::string ReasonOf(const std::string& id) {
    return std::string(Lines(cluster_->AsRoot("squeue -h -o %r -j " + id)).front());
  }

  static TestCluster* cluster_;
  std::unique_ptr<agent::Backend> backend_ = cluster_->MakeBackend();
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
  EXPECT_EQ(Line(checks, "partition debug").result(), v1::CHECK_RESULT_OK);
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
  const auto details = backend_->Describe();
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
  EXPECT_TRUE(backend_->Cancel(run.handle).ok());
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
  EXPECT_THAT(plan->submission(), HasSubstr("#!/bin/bash"));
  EXPECT_THAT(plan->submission(), HasSubstr("echo planned"));
  EXPECT_TRUE(plan->has_estimated_start_time()) << plan->DebugString();
  EXPECT_THAT(plan->nodes(), ElementsAre(testing::AnyOf("n1", "n2")));
  for (const v1::ClusterCheck& check : plan->checks()) {
    EXPECT_EQ(check.result(), v1::CHECK_RESULT_OK) << check.DebugString();
  }
  EXPECT_EQ(JobsInQueue(), jobs);
  EXPECT_FALSE(fs::exists(cluster_->runs() + "/plan-1-1"));
}

TEST_F(SlurmAnswersTest, APlanOfWhatSlurmWouldRefuseSaysWhy) {
  ASSERT_TRUE(backend_->Inventory().ok());
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_slurm()->set_partition("nosuch");
  const auto plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const v1::ClusterCheck& test = plan->checks(plan->checks_size() - 1);
  EXPECT_EQ(test.result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(test.seen(), HasSubstr("no such partition"));
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
    ASSERT_TRUE(backend_->SetHeld(run.handle, held).ok());
    EXPECT_EQ(ReasonOf(run.handle.external_id) == "JobHeldUser", held);
  }
  EXPECT_TRUE(backend_->Cancel(run.handle).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_TRUE(backend_->SetHeld(run.handle, true).ok()) << "it has ended";
}

TEST_F(SlurmAnswersTest, AHeldAssignmentDoesNotStartBeforeItsRelease) {
  TestRun run = NewRun(ScriptSpec("true"));
  auto held = std::make_shared<v1::Assignment>(*run.handle.assignment);
  held->set_held(true);
  run.handle.assignment = held;
  Launch(*backend_, &run);
  EXPECT_EQ(ReasonOf(run.handle.external_id), "JobHeldUser");
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  EXPECT_THAT(run.last.reason, HasSubstr("held"));
  ASSERT_TRUE(backend_->SetHeld(run.handle, false).ok());
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace muster::slurm
