// Someone sets the clock of the agent's host: that changes neither how often Slurm is asked nor how
// long a grace lasts.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace {
// How far the time of day has been set forward, in seconds.
std::atomic<int64_t> clock_step{0};
}  // namespace

// Takes the place of the C library's for this whole program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += clock_step;
  return result;
}

namespace muster::slurm {
namespace {

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

  // By so many seconds, until absl::Now() has noticed: it counts the processor's cycles, and looks
  // at the clock every two seconds only.
  static void SetClock(int64_t step) {
    clock_step = step;
    const time_t deadline = Monotonic() + 60;
    while (absl::AbsDuration(absl::Now() - Clock()) > absl::Minutes(1) && Monotonic() < deadline)
      absl::SleepFor(absl::Milliseconds(1));
    EXPECT_LT(absl::AbsDuration(absl::Now() - Clock()), absl::Minutes(1));
  }
  static absl::Time Clock() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return absl::TimeFromTimespec(now);
  }

  // Observes until squeue has been asked once more.
  agents::ObserveOutcome Observe() {
    const uint64_t before = backend_->SchedulerCalls()["squeue"];
    const time_t deadline = Monotonic() + 60;
    agents::ObserveOutcome outcome;
    while (backend_->SchedulerCalls()["squeue"] == before && Monotonic() < deadline)
      outcome = backend_->Observe({run_});
    EXPECT_GT(backend_->SchedulerCalls()["squeue"], before) << "squeue is not asked any more";
    return outcome;
  }
  static time_t Monotonic() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
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

TEST_F(SetClockTest, AStepForwardDoesNotShortenAGrace) {
  EXPECT_TRUE(Observe().observations.empty());
  SetClock(3600);
  ASSERT_GT(absl::Now(), run_.launch_time + absl::Minutes(30)) << "the test cannot set the clock";
  EXPECT_TRUE(Observe().observations.empty()) << "LOST without a grace";
}

}  // namespace
}  // namespace muster::slurm
