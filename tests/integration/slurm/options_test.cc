// Tests the inventory of a real Slurm, and its treatment of a job's resources and slurm section.
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = agents::LaunchOutcome::Kind;

class SlurmOptionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster("--nodes 2 --gpus 4 --min-job-age 60");
  }
  static void TearDownTestSuite() { delete cluster_; }

  std::string ShowJob(const TestRun& run) {
    return cluster_->AsRoot("scontrol -o show job " + run.handle.external_id);
  }

  static TestCluster* cluster_;
  std::unique_ptr<agents::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmOptionsTest::cluster_ = nullptr;

TEST_F(SlurmOptionsTest, TheInventoryShowsPartitionsNodesAndGpus) {
  const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(inventory->identity(), "lab");
  EXPECT_THAT(inventory->scheduler_version(), testing::StartsWith("slurm "));
  ASSERT_GT(inventory->pools_size(), 1);
  const v1::Pool& pool = inventory->pools(0);
  EXPECT_EQ(pool.name(), "debug");
  EXPECT_EQ(pool.is_default(), !cluster_->has_typed_rest());
  EXPECT_TRUE(pool.available());
  EXPECT_EQ(pool.max_time_limit().seconds(), 86400);
  ASSERT_EQ(pool.node_groups_size(), 1);
  EXPECT_EQ(pool.node_groups(0).count(), 2u);
  EXPECT_EQ(pool.node_groups(0).cpus(), 8u);
  EXPECT_EQ(pool.node_groups(0).gpus().at("h100"), 4u);
}

TEST_F(SlurmOptionsTest, GpusAreAskedForByTypeWithoutRegardToCase) {
  ASSERT_TRUE(backend_->Inventory().ok());
  v1::JobSpec spec = ScriptSpec("echo $CUDA_VISIBLE_DEVICES");
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("H100");
  gpus->set_count_millis(3000);
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(Output(*backend_, run), "0,1,2\n");
}

TEST_F(SlurmOptionsTest, WhatTheJobSaysIsWhatSlurmHas) {
  TestRun first = NewRun(ScriptSpec("sleep 300"));
  Launch(*backend_, &first);
  v1::JobSpec spec = ScriptSpec("echo done");
  spec.mutable_time_limit()->set_seconds(600);
  v1::SlurmOptions& slurm = *spec.mutable_slurm();
  slurm.set_partition("debug,gpu");
  slurm.set_dependency("afterany:" + first.handle.external_id);
  slurm.set_nice(7);
  slurm.set_requeue(false);
  slurm.set_mail_type("END,FAIL");
  slurm.set_mail_user("nobody");
  slurm.set_exclude("n2");
  // slurmrestd has nothing for it.
  const bool is_contiguous = !cluster_->is_over_rest();
  if (is_contiguous) slurm.add_extra_options("--contiguous");
  slurm.add_extra_options("--time-min=5");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  const std::string job = ShowJob(run);
  for (const char* words :
       {"Partition=debug,gpu", "Nice=7", "Requeue=0", "MailType=END,FAIL", "MailUser=nobody",
        "ExcNodeList=n2", is_contiguous ? "Contiguous=1" : "Contiguous=0", "TimeLimit=00:10:00",
        "TimeMin=00:05:00"}) {
    EXPECT_THAT(job, HasSubstr(words));
  }
  EXPECT_THAT(job, HasSubstr("afterany:" + first.handle.external_id));
  ObserveUntil(*backend_, {&run}, v1::RUN_STATE_PENDING);
  EXPECT_THAT(run.last.reason.message(), HasSubstr("waiting for another job to end"));

  EXPECT_TRUE(EndOne(*backend_, first.handle).ok());
  ObserveToEnd(*backend_, {&first, &run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED) << run.last.evidence.DebugString();
  EXPECT_EQ(Output(*backend_, run), "done\n");
}

TEST_F(SlurmOptionsTest, ARunKeepsAwayFromNodesOfFailedRunsThatAreStillThere) {
  v1::JobSpec spec = ScriptSpec("echo $SLURMD_NODENAME");
  spec.mutable_slurm()->set_exclude("n2");
  agent::v1::Assignment assignment = *NewRun(spec).handle.assignment;
  assignment.add_excluded_nodes("gone-7");
  assignment.add_excluded_nodes("n1");
  assignment.set_held(true);
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment);
  ASSERT_EQ(outcome.kind, Kind::kLaunched) << outcome.failure.message();
  const std::string job = cluster_->AsRoot("scontrol -o show job " + outcome.external_id);
  EXPECT_THAT(job, HasSubstr("ExcNodeList=n[1-2]"));
  EXPECT_THAT(job, HasSubstr("Reason=JobHeldUser"));
  cluster_->AsRoot("scancel " + outcome.external_id);
}

TEST_F(SlurmOptionsTest, WhatAJobLeavesOpenIsTheClustersProfile) {
  SlurmConfig config = cluster_->Config();
  v1::JobSpec& defaults = config.profile.defaults;
  defaults.mutable_time_limit()->set_seconds(1800);
  defaults.mutable_resources()->set_cpu_millis(2000);
  defaults.mutable_resources()->add_gpus()->set_count_millis(4000);
  defaults.mutable_slurm()->set_partition("gpu,debug");
  defaults.mutable_slurm()->set_comment("from the profile");
  defaults.mutable_slurm()->set_requeue(false);
  defaults.mutable_slurm()->add_extra_options("--wait-all-nodes=1");
  config.profile.gpus_per_node = 4;
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  const absl::StatusOr<v1::Inventory> inventory = backend->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  for (const v1::Pool& pool : inventory->pools())
    EXPECT_EQ(pool.is_default(), pool.name() == "gpu" || pool.name() == "debug") << pool.name();
  TestRun run = NewRun(ScriptSpec("echo $NUM_GPU_PER_NODE $CUDA_VISIBLE_DEVICES"));
  Launch(*backend, &run);
  const std::string job = ShowJob(run);
  for (const char* words : {"Partition=gpu", "TimeLimit=00:30:00", "CPUs/Task=2", "Requeue=0",
                            "Comment=from the profile", "OverSubscribe=NO"}) {
    EXPECT_THAT(job, HasSubstr(words));
  }
  ObserveToEnd(*backend, {&run});
  EXPECT_EQ(Output(*backend, run), "4 0,1,2,3\n");

  v1::JobSpec modest = ScriptSpec("echo $NUM_GPU_PER_NODE $SLURM_CPUS_ON_NODE");
  modest.mutable_resources()->set_cpu_millis(1000);
  modest.mutable_resources()->add_gpus()->set_count_millis(0);
  TestRun small = NewRun(modest);
  Launch(*backend, &small);
  EXPECT_THAT(ShowJob(small), AllOf(HasSubstr("CPUs/Task=1"), Not(HasSubstr("gres"))));
  ObserveToEnd(*backend, {&small});
  EXPECT_EQ(Output(*backend, small), "0 1\n");
}

TEST_F(SlurmOptionsTest, ATimeLimitThatThePartitionNeverGivesIsRefusedBeforeItWaitsForEver) {
  ASSERT_TRUE(backend_->Inventory().ok());
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_time_limit()->set_seconds(600);
  spec.mutable_placement()->set_pool("short");
  TestRun run = NewRun(spec);
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *run.handle.assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.message(),
              HasSubstr("time_limit: 10m is more than partition short allows; ask for at most 1m"));
  EXPECT_THAT(outcome.failure.message(), HasSubstr("debug"));
  EXPECT_THAT(cluster_->AsRoot("squeue -h -o %j"), Not(HasSubstr(run.handle.run_key)));
}

TEST_F(SlurmOptionsTest, APartitionThatIsClosedToTheAccountIsToldAtPlanAndLaunch) {
  cluster_->AsRoot("scontrol create partition=closed nodes=n1 AllowAccounts=other");
  cluster_->AsRoot("scontrol create partition=hiq nodes=n1 AllowQos=high");
  ASSERT_TRUE(backend_->Inventory().ok());
  const std::pair<const char*, const char*> cases[] = {
      {"closed", "partition closed is closed to account \"test\" (AllowAccounts=other)"},
      {"hiq", "partition hiq is closed to"}};
  for (const auto& [partition, words] : cases) {
    v1::JobSpec spec = ScriptSpec("true");
    spec.mutable_slurm()->set_partition(partition);
    const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "ada");
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->DebugString(), HasSubstr("closed to"));
    const agents::LaunchOutcome outcome = LaunchOne(*backend_, *NewRun(spec).handle.assignment);
    EXPECT_EQ(outcome.kind, Kind::kRefused);
    EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
    EXPECT_THAT(outcome.failure.message(), HasSubstr(words));
    EXPECT_THAT(outcome.failure.message(), HasSubstr("a partition that is open to it"));
  }
  v1::JobSpec either = ScriptSpec("echo $SLURM_JOB_PARTITION");
  either.mutable_slurm()->set_partition("closed,debug");
  TestRun run = NewRun(either);
  Launch(*backend_, &run);
  ObserveToEnd(*backend_, {&run});
  EXPECT_EQ(Output(*backend_, run), "debug\n");
  cluster_->AsRoot("scontrol delete partition=closed");
  cluster_->AsRoot("scontrol delete partition=hiq");
}

TEST_F(SlurmOptionsTest, AJobThatWaitsForAPartitionThatIsClosedToItSaysSoWithTheRemedy) {
  cluster_->AsRoot("scontrol create partition=closed nodes=n1 AllowAccounts=other");
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_slurm()->set_partition("closed");
  TestRun run = NewRun(spec);
  // The rights to the partition are not known yet, and Slurm lets the job wait for ever.
  Launch(*backend_, &run);
  // Slurm 24.11 says PartitionConfig.
  const std::string why = SlurmPrograms().empty()
                              ? "its account may not use the partition"
                              : "its partition cannot hold it or is closed to its account";
  WaitFor("Slurm says why it waits", [&] {
    return ObserveOnce(*backend_, {&run}).ok() && run.last.reason.message().find(why) == 0;
  });
  EXPECT_EQ(run.last.reason.code(), v1::STATE_REASON_CODE_CANNOT_START);
  EXPECT_THAT(run.last.reason.remedy(), HasSubstr("slurm.account"));
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
  cluster_->AsRoot("scontrol delete partition=closed");
}

TEST_F(SlurmOptionsTest, AJobGoesToThatOneOfTheDefaultPartitionsWhichHoldsIt) {
  cluster_->AsRoot("scontrol create partition=polar nodes=n1");
  cluster_->AsRoot("scontrol create partition=polar2 nodes=n[1-2]");
  SlurmConfig config = cluster_->Config();
  config.profile.defaults.mutable_slurm()->set_partition("polar,polar2");
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  const absl::StatusOr<v1::Inventory> inventory = backend->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  for (const v1::Pool& pool : inventory->pools())
    EXPECT_EQ(pool.is_default(), pool.name().starts_with("polar")) << pool.name();
  v1::JobSpec spec = ScriptSpec("echo $SLURM_JOB_PARTITION");
  spec.set_nodes(2);
  TestRun run = NewRun(spec);
  Launch(*backend, &run);
  ObserveToEnd(*backend, {&run});
  EXPECT_THAT(Output(*backend, run), StartsWith("polar2"));
  cluster_->AsRoot("scontrol delete partition=polar");
  cluster_->AsRoot("scontrol delete partition=polar2");
}

TEST_F(SlurmOptionsTest, ARunThatSlurmHasIsNotRefusedForALimitThatCameLater) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.mutable_time_limit()->set_seconds(600);
  spec.mutable_placement()->set_pool("short");
  TestRun run = NewRun(spec);
  // The limits are not known yet, and Slurm lets the job wait for ever.
  Launch(*backend_, &run);
  ASSERT_TRUE(backend_->Inventory().ok());
  const agents::LaunchOutcome again = LaunchAgain(*backend_, run);
  EXPECT_EQ(again.kind, Kind::kLaunched) << again.failure.message();
  EXPECT_EQ(again.external_id, run.handle.external_id);
  // Slurm 24.11 says it once it has looked at the job.
  WaitFor("Slurm says why it waits", [&] {
    return ObserveOnce(*backend_, {&run}).ok() &&
           run.last.reason.code() == v1::STATE_REASON_CODE_CANNOT_START;
  });
  EXPECT_THAT(run.last.reason.message(), HasSubstr("never start"));
  // Slurm says PartitionTimeLimit or PartitionConfig, by what it looks at first.
  EXPECT_THAT(run.last.reason.remedy(), StartsWith("cancel it and ask for less"));
  EXPECT_TRUE(EndOne(*backend_, run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

TEST_F(SlurmOptionsTest, ARunThatSlurmHasIsNotRefusedForSettingsThatCameLater) {
  v1::JobSpec spec = ScriptSpec("true");
  spec.add_inputs()->set_uri("lustre:///etc");
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  SlurmConfig config = cluster_->Config();
  config.storage_roots = {{"lustre", "/elsewhere"}};
  const std::unique_ptr<agents::Backend> backend = cluster_->MakeBackend(config);
  const agents::LaunchOutcome again = LaunchAgain(*backend, run);
  EXPECT_EQ(again.kind, Kind::kLaunched) << again.failure.message() << again.evidence.DebugString();
  EXPECT_EQ(again.external_id, run.handle.external_id);
  EXPECT_EQ(LaunchOne(*backend, *NewRun(spec).handle.assignment).kind, Kind::kRefused);
  ObserveToEnd(*backend, {&run});
}

}  // namespace
}  // namespace muster::slurm
