// Tests proofs that nothing of a run lives on the cluster, and that nothing ever will. Slurm's
// commands are scripts.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using Proof = agents::FenceOutcome::Kind;
using ::testing::HasSubstr;

constexpr char kFencedRun[] = "k7m2-42-1";

class BackendFenceTest : public StubCommandsTest {
 protected:
  BackendFenceTest() {
    AddCommand("squeue", "");
    AddCommand("sacct", "");
    backend_ = CreateSlurmBackend(Config(), root_);
    run_.run_key = kFencedRun;
  }

  // A launch has come as far as its submission.
  void WriteFiles() {
    const std::filesystem::path script = Paths().script();
    std::filesystem::create_directories(script.parent_path());
    std::ofstream(script) << "#!/bin/sh\n";
  }
  // That job of Slurm's has the run.
  void WriteClaim(const std::string& job) { std::ofstream(Paths().claim()) << job << "\n"; }
  void ListInQueue(const std::string& state) {
    AddCommand("squeue",
               fmt::format("printf '23\\037N/A\\037{}\\037{}\\037None\\037n1\\0371\\037N/A\\037N/A"
                           "\\0370\\037main\\037lab\\037normal\\n'",
                           kFencedRun, state));
  }
  void ListInHistory(const std::string& state) {
    AddCommand("sacct", fmt::format("printf '23\\03723\\037{}\\037{}\\0370:0\\037n1\\0371795226827"
                                    "\\0371795226829\\037main\\037lab\\037normal\\n'",
                                    kFencedRun, state));
  }
  agents::FenceOutcome Fence() { return backend_->Fence(run_); }
  static RunPaths PathsIn(const SlurmConfig& config) { return {config.run_dir, kFencedRun}; }
  RunPaths Paths() const { return PathsIn(Config()); }

  std::unique_ptr<agents::Backend> backend_;
  agents::RunHandle run_;
};

TEST_F(BackendFenceTest, ARunThatNoJobHasClaimedCanNeverBegin) {
  WriteFiles();
  const agents::FenceOutcome fence = Fence();
  EXPECT_EQ(fence.kind, Proof::kNeverBegins);
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("no Slurm job has claimed the run"));
  EXPECT_TRUE(std::filesystem::is_directory(Paths().claim()))
      << "a job that comes late stops there";
  EXPECT_EQ(Fence().kind, Proof::kNeverBegins) << "it may be asked for again";
  EXPECT_EQ(backend_->SchedulerCalls()["squeue"], 0) << "Slurm need not answer";
}

TEST_F(BackendFenceTest, WhereTheFilesOfTheRunAreNotThereNothingIsProved) {
  const agents::FenceOutcome fence = Fence();
  EXPECT_EQ(fence.kind, Proof::kNotYet);
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("the run's files are not there"));
  EXPECT_FALSE(std::filesystem::exists(Paths().directory()));
}

TEST_F(BackendFenceTest, AJobThatHasClaimedTheRunIsNotFencedWhileItLives) {
  WriteFiles();
  WriteClaim("23");
  ListInQueue("RUNNING");
  const agents::FenceOutcome fence = Fence();
  EXPECT_EQ(fence.kind, Proof::kNotYet);
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("Slurm job 23 has claimed the run"));
  ListInQueue("COMPLETING");
  EXPECT_NE(CreateSlurmBackend(Config(), root_)->Fence(run_).kind, Proof::kEnded);
}

TEST_F(BackendFenceTest, TheEndOfTheJobThatHasTheRunIsProvedByTheQueueOrTheHistory) {
  WriteFiles();
  WriteClaim("23");
  ListInHistory("RUNNING");
  EXPECT_EQ(CreateSlurmBackend(Config(), root_)->Fence(run_).kind, Proof::kNotYet);
  ListInHistory("TIMEOUT");
  EXPECT_EQ(CreateSlurmBackend(Config(), root_)->Fence(run_).kind, Proof::kEnded);
  ListInQueue("COMPLETED");
  const agents::FenceOutcome fence = CreateSlurmBackend(Config(), root_)->Fence(run_);
  EXPECT_EQ(fence.kind, Proof::kEnded);
  EXPECT_EQ(fence.evidence.source(), v1::EVIDENCE_SOURCE_SQUEUE);
}

TEST_F(BackendFenceTest, AJobOfWhichSlurmSaysNothingIsNoProof) {
  WriteFiles();
  WriteClaim("23");
  EXPECT_EQ(Fence().kind, Proof::kNotYet) << "neither squeue nor sacct knows it";
  AddCommand("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(CreateSlurmBackend(Config(), root_)->Fence(run_).kind, Proof::kNotYet);
}

}  // namespace
}  // namespace muster::slurm
