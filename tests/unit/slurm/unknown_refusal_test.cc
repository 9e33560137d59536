// A submission that Slurm refuses in words that no table holds. Slurm's commands are scripts.
#include <filesystem>
#include <memory>
#include <string>

#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using Kind = agents::LaunchOutcome::Kind;
using ::testing::HasSubstr;

constexpr char kRunKey[] = "k7m2-42-1";

class UnknownRefusalTest : public StubCommandsTest {
 protected:
  UnknownRefusalTest() {
    AddCommand("sbatch",
               "echo 'sbatch: error: Batch job submission failed: The moon is full' >&2; exit 1");
    AddCommand("squeue", "");
    AddCommand("sacct", "");
    backend_ = CreateSlurmBackend(Config(), root_);
  }

  agents::LaunchOutcome Launch() {
    agent::v1::Assignment assignment;
    assignment.set_run_key(kRunKey);
    assignment.mutable_spec()->mutable_command()->set_script("true");
    return LaunchOne(*backend_, assignment);
  }
  std::string Claim() const { return RunPaths(Config().run_dir, kRunKey).claim(); }

  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(UnknownRefusalTest, ItIsToldAtOnceOnceSlurmIsSeenNotToHaveTheJob) {
  const agents::LaunchOutcome outcome = Launch();
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.code(), v1::FAILURE_CODE_LAUNCH_REFUSED);
  EXPECT_EQ(outcome.failure.message(), "The cluster refused the run: The moon is full");
  EXPECT_FALSE(outcome.failure.retriable());
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("Batch job submission failed"));
  EXPECT_EQ(backend_->SchedulerCalls()["sbatch"], 1);
  EXPECT_EQ(backend_->SchedulerCalls()["squeue"], 1);
  EXPECT_TRUE(std::filesystem::is_directory(Claim())) << "no job that comes late may begin";
}

TEST_F(UnknownRefusalTest, WhereSlurmCannotBeAskedItStaysInDoubt) {
  AddCommand("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(Launch().kind, Kind::kUnclear);
  EXPECT_FALSE(std::filesystem::exists(Claim()));
}

TEST_F(UnknownRefusalTest, AJobThatSlurmHasAllTheSameIsLookedUpAndRuns) {
  AddCommand(
      "squeue",
      fmt::format("printf '23\\037N/A\\037{}\\037RUNNING\\037None\\037n1\\0371\\037N/A\\037N/A"
                  "\\0370\\037p\\037a\\037q\\n'",
                  kRunKey));
  EXPECT_EQ(Launch().kind, Kind::kUnclear);
  EXPECT_FALSE(std::filesystem::exists(Claim()));
  agents::RunHandle run;
  run.run_key = kRunKey;
  EXPECT_EQ(backend_->Lookup(run).external_id, "23");
}

TEST_F(UnknownRefusalTest, AJobThatHasClaimedTheRunIsNotRefused) {
  AddCommand("sbatch", fmt::format("echo 23 >{}; echo 'sbatch: error: x' >&2; exit 1", Claim()));
  EXPECT_EQ(Launch().kind, Kind::kUnclear);
  EXPECT_TRUE(std::filesystem::is_regular_file(Claim()));
}

TEST_F(UnknownRefusalTest, AConversionThatSlurmRefusesSoIsToldAtOnceToo) {
  AddCommand("srun", "echo ' --container-image=x'");
  agent::v1::Assignment assignment;
  assignment.set_run_key(kRunKey);
  assignment.mutable_spec()->mutable_command()->set_script("true");
  assignment.mutable_spec()->set_image("registry.test/muster/bash:1");
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("The moon is full"));
  EXPECT_EQ(backend_->SchedulerCalls()["sbatch"], 1);
}

}  // namespace
}  // namespace muster::slurm
