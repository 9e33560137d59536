// Tests that it changes neither how often Slurm is asked nor how long a grace lasts if someone sets
// the clock of the agent's host.
#include "tests/unit/hosts/set_clock.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::slurm {
namespace {

using hosts::SetClock;

class SetClockTest : public ::testing::Test {
 protected:
  SetClockTest() {
    for (const char* name : {"squeue", "sacct"}) {
      const std::string path = root_ / name;
      std::ofstream(path) << "#!/bin/sh\nexit 0\n";
      std::filesystem::permissions(path, std::filesystem::perms(0700));
    }
    SlurmConfig config;
    config.cluster = "lab";
    config.run_dir = root_ / "runs";
    config.bin_dir = root_.path();
    // Shorter than a squeue takes to start, so that each Observe is due to ask.
    config.observe_interval = absl::Nanoseconds(1);
    config.max_polls_per_minute = 0;
    std::filesystem::create_directories(RunPaths::EndedDirectory(config.run_dir));
    backend_ = CreateSlurmBackend(config, root_.path());
    run_.run_key = "k7m2-42-1";
    const std::filesystem::path script = RunPaths(config.run_dir, run_.run_key).script();
    std::filesystem::create_directories(script.parent_path());
    std::ofstream(script).flush();
    run_.external_id = "17";
    run_.launch_time = absl::Now();
  }
  ~SetClockTest() override { SetClock(0); }

  // Observes until squeue has been asked once more.
  agents::ObserveOutcome Observe() {
    const uint64_t before = backend_->SchedulerCalls()["squeue"];
    const absl::Duration deadline = hosts::SteadyNow() + absl::Minutes(1);
    agents::ObserveOutcome outcome;
    while (backend_->SchedulerCalls()["squeue"] == before && hosts::SteadyNow() < deadline)
      outcome = backend_->Observe({run_});
    EXPECT_GT(backend_->SchedulerCalls()["squeue"], before) << "squeue is not asked any more";
    return outcome;
  }

  hosts::TempDir root_;
  std::unique_ptr<agents::Backend> backend_;
  agents::RunHandle run_;
};

TEST_F(SetClockTest, AStepBackDoesNotKeepTheBackendFromAsking) {
  Observe();
  SetClock(-3600);
  ASSERT_LT(absl::Now(), run_.launch_time) << "the test cannot set the clock";
  Observe();
}

// The file server dates the claim, and so does it the file that tells its time.
TEST_F(SetClockTest, AStepForwardMakesNoClaimOld) {
  std::ofstream(RunPaths(root_ / "runs", run_.run_key).claim()).flush();
  SetClock(3600);
  EXPECT_EQ(backend_->Lookup(run_).kind, agents::LookupOutcome::Kind::kCouldNotAsk);
}

TEST_F(SetClockTest, AccountingIsAskedForJobsSinceADayBeforeTheLaunch) {
  std::ofstream(root_ / "sacct") << "#!/bin/sh\necho \"$*\" >" << root_ / "asked"
                                 << "\n";
  EXPECT_EQ(backend_->Lookup(run_).kind, agents::LookupOutcome::Kind::kAbsent);
  std::ostringstream asked;
  asked << std::ifstream(root_ / "asked").rdbuf();
  const absl::Time since = run_.launch_time - absl::Hours(24);
  EXPECT_NE(asked.str().find(fmt::format("--starttime=uts{} ", absl::ToUnixSeconds(since))),
            std::string::npos)
      << asked.str();
}

TEST_F(SetClockTest, AStepForwardDoesNotShortenAGrace) {
  EXPECT_TRUE(Observe().observations.empty());
  SetClock(3600);
  ASSERT_GT(absl::Now(), run_.launch_time + absl::Minutes(30)) << "the test cannot set the clock";
  EXPECT_TRUE(Observe().observations.empty()) << "LOST without a grace";
}

}  // namespace
}  // namespace muster::slurm
