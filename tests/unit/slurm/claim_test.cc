// Tests the backend's handling of a run's claim, with commands in Slurm's place that know no job.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

class ClaimTest : public StubCommandsTest {
 protected:
  ClaimTest() {
    AddCommand("squeue", "");
    AddCommand("sacct", "");
    AddCommand("scancel", "");
    AddCommand("sbatch", "echo 17");
    backend_ = CreateSlurmBackend(Config(), root_);
    assignment_.set_run_key("k7m2-42-1");
    assignment_.mutable_spec()->mutable_command()->set_script("true");
    handle_.run_key = assignment_.run_key();
  }

  std::string Claim() const { return RunPaths(root_ + "/runs", assignment_.run_key()).claim(); }

  std::unique_ptr<agents::Backend> backend_;
  agent::v1::Assignment assignment_;
  agents::RunHandle handle_;
};

TEST_F(ClaimTest, AnEmptyClaimTellsNothingWhileItIsNewAndNobodysWhenItIsOld) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()).flush();
  EXPECT_EQ(backend_->Lookup(handle_).kind, agents::LookupOutcome::Kind::kCouldNotAsk);
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kUnclear);
  std::filesystem::last_write_time(
      Claim(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(backend_->Lookup(handle_).kind, agents::LookupOutcome::Kind::kAbsent);
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_FALSE(std::filesystem::exists(Claim())) << "the new job could not claim the run";
}

// A late sbatch's job, which began after the claim was read and before sacct had answered.
TEST_F(ClaimTest, AClaimThatComesWhileTheRunIsLookedUpStaysAndNothingIsSubmitted) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  AddCommand("sacct", "echo 99 >" + Claim());
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment_);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kUnclear);
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("Slurm job 99 claimed the run"));
  EXPECT_EQ(backend_->SchedulerCalls()["sbatch"], 1u);
  EXPECT_EQ(backend_->Lookup(handle_).external_id, "99");
}

TEST_F(ClaimTest, AnOldEmptyClaimThatIsWrittenAfterAllIsPutBack) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()).flush();
  std::filesystem::last_write_time(
      Claim(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  // Its job writes at the last moment.
  AddCommand("mv", "echo 99 >\"$2\"; exec /bin/mv \"$@\"");
  const std::string path = getenv("PATH");
  setenv("PATH", (root_ + ":" + path).c_str(), 1);
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, assignment_);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kUnclear);
  EXPECT_EQ(backend_->SchedulerCalls()["sbatch"], 1u);
  EXPECT_EQ(backend_->Lookup(handle_).external_id, "99");
}

TEST_F(ClaimTest, AWholeClaimNamesTheJob) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()) << "23\n";
  const agents::LookupOutcome found = backend_->Lookup(handle_);
  EXPECT_EQ(found.kind, agents::LookupOutcome::Kind::kFound);
  EXPECT_EQ(found.external_id, "23");
}

// The agent has fenced the run, and died before it said what for.
TEST_F(ClaimTest, AFenceIsNobodysClaimAndTheRunIsLaunchedAgain) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  std::filesystem::create_directory(Claim());
  EXPECT_EQ(backend_->Lookup(handle_).kind, agents::LookupOutcome::Kind::kAbsent);
  EXPECT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_FALSE(std::filesystem::exists(Claim())) << "the new job could not claim the run";
}

// A file server that is away shows no claim, and the queue shows what is to end.
TEST_F(ClaimTest, ARunThatIsToEndIsFoundByItsJobsWhereItsClaimCannotBeRead) {
  ASSERT_EQ(LaunchOne(*backend_, assignment_).kind, agents::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()).flush();
  AddCommand(
      "squeue",
      R"sh(printf '23\037N/A\037k7m2-42-1\037RUNNING\037None\037n1\0371\037N/A\037N/A\0370\037p\037a\037q\n')sh");
  AddCommand("scancel", "echo \"$*\" >>" + root_ + "/canceled");
  backend_ = CreateSlurmBackend(Config(), root_);
  EXPECT_EQ(backend_->Lookup(handle_).kind, agents::LookupOutcome::Kind::kCouldNotAsk);
  handle_.cancel_requested = true;
  const agents::LookupOutcome found = backend_->Lookup(handle_);
  EXPECT_EQ(found.kind, agents::LookupOutcome::Kind::kFound);
  EXPECT_EQ(found.external_id, "23");
  EXPECT_TRUE(EndOne(*backend_, handle_).ok());
  EXPECT_TRUE(std::filesystem::exists(root_ + "/canceled"));
  AddCommand("squeue", "");
  backend_ = CreateSlurmBackend(Config(), root_);
  EXPECT_EQ(backend_->Lookup(handle_).kind, agents::LookupOutcome::Kind::kCouldNotAsk)
      << "a job that is not listed may have run";
}

}  // namespace
}  // namespace muster::slurm
