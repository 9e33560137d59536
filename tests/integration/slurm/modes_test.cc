// How runs are laid out and started: their files, their environment, their kinds of programs.
#include <memory>
#include <string>

#include "agents/slurm/run_files.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SlurmModesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster("--nodes 2 --gpus 4 --min-job-age 60 --no-dbd");
  }
  static void TearDownTestSuite() { delete cluster_; }

  TestRun RunToEnd(v1::JobSpec spec) {
    TestRun run = NewRun(std::move(spec));
    Launch(*backend_, &run);
    if (!HasFatalFailure()) ObserveToEnd(*backend_, {&run});
    return run;
  }
  std::string Directory(const TestRun& run) const {
    return cluster_->runs() + "/" + run.handle.run_key;
  }

  static TestCluster* cluster_;
  std::unique_ptr<agent::Backend> backend_ = cluster_->MakeBackend();
};

TestCluster* SlurmModesTest::cluster_ = nullptr;

TEST_F(SlurmModesTest, TheRunsDirectoryTellsWhatRanWhereAndHow) {
  v1::JobSpec spec = ScriptSpec("echo \"$1\"");
  spec.mutable_command()->add_script_arguments("hello");
  const TestRun run = RunToEnd(spec);
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_SUCCEEDED);
  const std::string directory = Directory(run);
  EXPECT_EQ(ReadWhole(directory + "/slurm-logs/rank-0.out"), "hello\n");
  EXPECT_EQ(ReadWhole(directory + "/specs/command"), "echo \"$1\"");
  EXPECT_THAT(ReadWhole(directory + "/specs/job.json"), HasSubstr("hello"));
  EXPECT_THAT(ReadWhole(directory + "/meta/run.json"), HasSubstr(run.handle.run_key));
  EXPECT_THAT(ReadWhole(directory + "/meta/slurm.json"),
              HasSubstr("\"slurm_job_id\": " + run.handle.external_id + ","));
  EXPECT_THAT(ReadWhole(directory + "/sbatch/command"),
              HasSubstr("--job-name=" + run.handle.run_key));
  EXPECT_EQ(ReadWhole(directory + "/sbatch/batch.sh"), BatchScript());
}

TEST_F(SlurmModesTest, ASecretIsWhereTheUserAloneReadsItAndNowhereElse) {
  const std::string secret = "hunter2-c0ffee";
  v1::JobSpec spec = ScriptSpec("echo \"${#TOKEN}\"; sleep 300");
  (*spec.mutable_env())["TOKEN"] = secret;
  TestRun run = NewRun(spec);
  Launch(*backend_, &run);
  WaitFor("the start",
          [&] { return Output(*backend_, run) == fmt::format("{}\n", secret.size()); });
  const std::string id = run.handle.external_id;
  EXPECT_THAT(cluster_->AsRoot("scontrol show job -d " + id), Not(HasSubstr(secret)));
  EXPECT_THAT(cluster_->AsRoot("scontrol write batch_script " + id + " -"),
              testing::AllOf(HasSubstr("muster"), Not(HasSubstr(secret))));
  EXPECT_THAT(Root().Run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").output,
              Not(HasSubstr(secret)));
  // All files but the one that is meant for it.
  EXPECT_EQ(Root()
                .Run(fmt::format("cd {}; grep -rlF '{}' runs cluster/log cluster/etc",
                                 cluster_->directory(), secret))
                .output,
            fmt::format("runs/{}/env/environment\n", run.handle.run_key));
  const std::string directory = Directory(run);
  EXPECT_EQ(Root().Run(fmt::format("stat -c %a {0}/env/environment {0}", directory)).output,
            "600\n700\n");
  EXPECT_TRUE(backend_->Cancel(run.handle).ok());
  ObserveToEnd(*backend_, {&run});
}

}  // namespace
}  // namespace muster::slurm
