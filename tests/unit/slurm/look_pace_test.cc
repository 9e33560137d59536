// The time to the next look at the queue while an end is awaited.
#include "agents/slurm/look_pace.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

TEST(LookPaceTest, LooksGrowRarerUntilThereIsNewsAndEndWithWhatIsAwaited) {
  LookPace pace;
  EXPECT_EQ(pace.interval(), absl::InfiniteDuration());
  pace.Hurry();
  EXPECT_EQ(pace.interval(), LookPace::kSoon);
  pace.Looked(true, false);
  EXPECT_EQ(pace.interval(), LookPace::kSoon) << "Slurm was not asked";
  pace.Looked(true, true);
  pace.Looked(true, true);
  EXPECT_EQ(pace.interval(), LookPace::kSoon * 9 / 4);
  pace.Hurry();
  EXPECT_EQ(pace.interval(), LookPace::kSoon);
  pace.Looked(false, true);
  EXPECT_EQ(pace.interval(), absl::InfiniteDuration());
}

class PaceOfTheBackendTest : public StubCommandsTest {
 protected:
  PaceOfTheBackendTest() {
    AddCommand("squeue", fmt::format("exec cat {}/queue", root_));
    AddCommand("sacct", "");
    AddCommand("scancel", "");
    std::filesystem::create_directories(RunPaths::EndedDirectory(root_));
    std::filesystem::create_directories(
        std::filesystem::path(RunPaths(root_, run_.run_key).script()).parent_path());
    std::ofstream(RunPaths(root_, run_.run_key).script()).flush();
    SetQueue("RUNNING");
    SlurmConfig config = Config();
    config.run_dir = root_;
    config.observe_interval = kRegular;
    config.max_polls_per_minute = 20;
    backend_ = CreateSlurmBackend(config, root_);
  }

  void SetQueue(const std::string& state) {
    std::ofstream(root_ + "/queue") << fmt::format(
        "17\x1fN/A\x1f{}\x1f{}\x1fNone\x1fn1\x1f{}\x1fN/A\x1fN/A\x1f"
        "0\x1fp\x1f"
        "a\x1fq\n",
        run_.run_key, state, absl::ToUnixSeconds(run_.launch_time));
  }
  // Looks at the run until the queue has been asked once more.
  v1::RunState Look() {
    const uint64_t before = backend_->SchedulerCalls()["squeue"];
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    agents::ObserveOutcome seen;
    while (backend_->SchedulerCalls()["squeue"] == before && absl::Now() < deadline)
      seen = backend_->Observe({run_});
    return seen.observations.empty() ? v1::RUN_STATE_UNSPECIFIED : seen.observations[0].state;
  }

  static agents::RunHandle MakeRun() {
    agents::RunHandle run;
    run.run_key = "k7m2-1-1";
    run.external_id = "17";
    run.launch_time = absl::Now();
    return run;
  }

  // No test waits so long.
  static constexpr absl::Duration kRegular = absl::Hours(1);
  agents::RunHandle run_ = MakeRun();
  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(PaceOfTheBackendTest, AfterACancelTheAgentIsWokenForALookUntilTheEndIsKnown) {
  EXPECT_EQ(Look(), v1::RUN_STATE_RUNNING);
  EXPECT_EQ(backend_->ObserveInterval(), kRegular);
  absl::Notification woken;
  backend_->SetWaker([&woken] {
    if (!woken.HasBeenNotified()) woken.Notify();
  });
  EXPECT_TRUE(EndOne(*backend_, run_).ok());
  EXPECT_LT(backend_->ObserveInterval(), kRegular);
  EXPECT_TRUE(woken.WaitForNotificationWithTimeout(absl::Seconds(60)));
  backend_->SetWaker([] {});
  SetQueue("COMPLETING");
  EXPECT_EQ(Look(), v1::RUN_STATE_FINISHING);
  EXPECT_LT(backend_->ObserveInterval(), kRegular);
  SetQueue("CANCELLED");
  EXPECT_EQ(Look(), v1::RUN_STATE_CANCELED);
  EXPECT_EQ(backend_->ObserveInterval(), kRegular);
}

TEST_F(PaceOfTheBackendTest, ARecordThatSlurmHasYetToConfirmIsFollowedByALook) {
  EXPECT_EQ(Look(), v1::RUN_STATE_RUNNING);
  std::ofstream(RunPaths(root_, run_.run_key).exit_record())
      << "job=17 restart=0\nphase=command problem=none pulled=0\n"
         "code=3 signal=0 terminated=0 continued=0 rank=0\nstart=1 end=2\nnodes=n1\n"
         "cause=none about=\ncomplete\n";
  EXPECT_EQ(backend_->Observe({run_}).observations.at(0).state, v1::RUN_STATE_FINISHING);
  EXPECT_EQ(backend_->SchedulerCalls()["squeue"], 1) << "the job's end takes Slurm a moment";
  EXPECT_LT(backend_->ObserveInterval(), kRegular);
  SetQueue("FAILED");
  EXPECT_EQ(Look(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(backend_->ObserveInterval(), kRegular);
}

}  // namespace
}  // namespace muster::slurm
