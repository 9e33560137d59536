// What the backend makes of a run's claim, with commands in Slurm's place that know no job.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "gtest/gtest.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

class ClaimTest : public StubCommandsTest {
 protected:
  ClaimTest() {
    AddCommand("squeue", "");
    AddCommand("sacct", "");
    AddCommand("scancel", "");
    AddCommand("sbatch", "echo 17");
    SlurmConfig config;
    config.cluster = "lab";
    config.run_dir = root_ + "/runs";
    config.bin_dir = root_;
    config.max_scheduler_calls_per_minute = 0;
    backend_ = CreateSlurmBackend(config, root_);
    assignment_.set_run_key("k7m2-42-1");
    assignment_.mutable_spec()->mutable_command()->set_script("true");
    handle_.run_key = assignment_.run_key();
  }

  std::string Claim() const { return RunPaths(root_ + "/runs", assignment_.run_key()).claim(); }

  std::unique_ptr<agent::Backend> backend_;
  v1::Assignment assignment_;
  agent::RunHandle handle_;
};

TEST_F(ClaimTest, AnEmptyClaimTellsNothingWhileItIsNewAndNobodysWhenItIsOld) {
  ASSERT_EQ(backend_->Launch(assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()).flush();
  EXPECT_EQ(backend_->Lookup(handle_).kind, agent::LookupOutcome::Kind::kCouldNotAsk);
  EXPECT_EQ(backend_->Launch(assignment_).kind, agent::LaunchOutcome::Kind::kUnclear);
  std::filesystem::last_write_time(
      Claim(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(backend_->Lookup(handle_).kind, agent::LookupOutcome::Kind::kAbsent);
  EXPECT_EQ(backend_->Launch(assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  EXPECT_FALSE(std::filesystem::exists(Claim())) << "the new job could not claim the run";
}

TEST_F(ClaimTest, AWholeClaimNamesTheJob) {
  ASSERT_EQ(backend_->Launch(assignment_).kind, agent::LaunchOutcome::Kind::kLaunched);
  std::ofstream(Claim()) << "23\n";
  const agent::LookupOutcome found = backend_->Lookup(handle_);
  EXPECT_EQ(found.kind, agent::LookupOutcome::Kind::kFound);
  EXPECT_EQ(found.external_id, "23");
}

}  // namespace
}  // namespace muster::slurm
