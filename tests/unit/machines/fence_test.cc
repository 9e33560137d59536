// Proofs that nothing of a run lives on this machine, and that nothing ever will.
#include "agents/machines/fence.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "agents/machines/process_id.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::machines {
namespace {

using Proof = agents::FenceOutcome::Kind;

class FenceRunTest : public ::testing::Test {
 protected:
  // Writes a run that a launch has written down, and that is in no queue, because the agent was
  // killed then.
  void Write() {
    RunSpec spec;
    spec.run_key = "k7m2-1-1";
    ASSERT_TRUE(directory_.Create(spec).ok());
  }
  template <typename Record>
  void Put(const char* name, const Record& record) {
    std::ofstream(directory_.PathOf(name)) << record.Encode();
  }
  Proof Fence() { return FenceRun(directory_, std::nullopt).kind; }

  hosts::TempDir dir_;
  RunDirectory directory_{dir_ / "run"};
};

TEST_F(FenceRunTest, ARunThatIsNotThereCanNeverBegin) {
  EXPECT_EQ(Fence(), Proof::kNeverBegins);
  EXPECT_FALSE(directory_.Exists()) << "nothing is made for it";
}

TEST_F(FenceRunTest, ARunThatHasNotBegunLosesItsClaim) {
  Write();
  EXPECT_EQ(Fence(), Proof::kNeverBegins);
  EXPECT_TRUE(absl::IsAlreadyExists(directory_.CloseWithoutStart(1)))
      << "a supervisor that comes late does not get it";
  EXPECT_EQ(Fence(), Proof::kEnded) << "it may be asked for again";
  EXPECT_TRUE(directory_.Read()->exit.has_value());
}

TEST_F(FenceRunTest, ARunOfWhichNothingTellsTheEndIsNeverProved) {
  Write();
  Put(kClaimFile, Claim{.owner = {}, .devices = ""});
  EXPECT_EQ(Fence(), Proof::kImpossible);
}

TEST_F(FenceRunTest, AnEndIsProofUnlessItHasLeftProcesses) {
  Write();
  Put(kClaimFile, Claim{.owner = {}, .devices = ""});
  Put(kExitFile, ExitRecord{.end = ExitRecord::End::kExited, .left_behind = true});
  EXPECT_EQ(Fence(), Proof::kNotYet);
  Put(kExitFile, ExitRecord{.end = ExitRecord::End::kExited});
  EXPECT_EQ(Fence(), Proof::kEnded);
}

TEST_F(FenceRunTest, TheBoardTellsOfTheRunsThatItHas) {
  RunBoard board;
  EXPECT_FALSE(board.Fence("k7m2-1-1").has_value());
  agents::Observation seen;
  seen.run_key = "k7m2-1-1";
  const auto fence = [&](v1::RunState state, bool leaves_processes = false) {
    seen.state = state;
    board.Put(seen, leaves_processes);
    return board.Fence("k7m2-1-1")->kind;
  };
  EXPECT_EQ(fence(v1::RUN_STATE_PENDING), Proof::kNotYet);
  EXPECT_EQ(fence(v1::RUN_STATE_RUNNING), Proof::kNotYet);
  EXPECT_EQ(fence(v1::RUN_STATE_FAILED, true), Proof::kNotYet);
  EXPECT_EQ(fence(v1::RUN_STATE_FAILED), Proof::kEnded);
  EXPECT_EQ(fence(v1::RUN_STATE_LOST), Proof::kImpossible);
  board.PutUnseen("k7m2-1-1");
  EXPECT_EQ(board.Fence("k7m2-1-1")->kind, Proof::kNotYet);
}

}  // namespace
}  // namespace muster::machines
