// Tests the backend's reports of a run that Slurm puts back, from squeue's answers and the records
// that lie about. squeue is a script that shows a file, and fails if there is none.
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

class RequeueTest : public StubCommandsTest {
 protected:
  RequeueTest() {
    AddCommand("squeue", fmt::format("exec cat {}/queue", root_));
    AddCommand("sacct", "exit 0");
    std::filesystem::create_directories(RunPaths::EndedDirectory(root_));
    run_.run_key = "k7m2-42-1";
    run_.external_id = "17";
    run_.launch_time = absl::Now();
    backend_ = MakeBackend();
  }

  std::unique_ptr<agents::Backend> MakeBackend() {
    SlurmConfig config = Config();
    config.run_dir = root_;
    // Shorter than a squeue takes to start, so that each Observe is due to ask.
    config.observe_interval = absl::Nanoseconds(1);
    return CreateSlurmBackend(config, root_);
  }
  // Writes the record as batch.sh does at the end of a start.
  void Record(int restart, int code) {
    std::ofstream(RunPaths(root_, run_.run_key).exit_record()) << fmt::format(
        "job=17 restart={}\nphase=command problem=none\n"
        "code={} signal=0 terminated=0 continued=1 rank=0\nstart=900 end=950\ncomplete\n",
        restart, code);
  }
  // Returns the run's state after a look at a queue that has the job in the state, or, without one,
  // at no queue.
  v1::RunState See(std::optional<std::string> state) {
    std::filesystem::remove(root_ + "/queue");
    if (state.has_value()) {
      std::ofstream(root_ + "/queue") << fmt::format(
          "17\x1fN/A\x1f{}\x1f{}\x1fNone\x1fn1\x1f{}\x1fN/A\x1fN/A\x1f"
          "0\x1fp\x1f"
          "a\x1fq\n",
          run_.run_key, *state, absl::ToUnixSeconds(run_.launch_time));
    }
    const uint64_t before = backend_->SchedulerCalls()["squeue"];
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (backend_->SchedulerCalls()["squeue"] == before && absl::Now() < deadline) {
      const agents::ObserveOutcome outcome = backend_->Observe({run_});
      for (const agents::Observation& seen : outcome.observations) {
        run_.state = seen.state;
        last_ = seen;
      }
    }
    EXPECT_GT(backend_->SchedulerCalls()["squeue"], before) << "squeue is not asked";
    return run_.state;
  }

  agents::RunHandle run_;
  agents::Observation last_;
  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(RequeueTest, TheRecordOfAnEarlierStartMovesNothing) {
  EXPECT_EQ(See("RUNNING"), v1::RUN_STATE_RUNNING);
  Record(0, 3);
  EXPECT_EQ(See("COMPLETING"), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(See("PENDING"), v1::RUN_STATE_PENDING);
  EXPECT_EQ(See(std::nullopt), v1::RUN_STATE_PENDING);
  EXPECT_EQ(See("CONFIGURING"), v1::RUN_STATE_STARTING);
  EXPECT_EQ(See(std::nullopt), v1::RUN_STATE_STARTING);
  EXPECT_EQ(See("RUNNING"), v1::RUN_STATE_RUNNING) << "batch.sh has yet to remove it";
  EXPECT_EQ(See(std::nullopt), v1::RUN_STATE_RUNNING);
  Record(1, 4);
  EXPECT_EQ(See(std::nullopt), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(See("FAILED"), v1::RUN_STATE_FAILED);
  ASSERT_TRUE(last_.exit.has_value());
  EXPECT_EQ(last_.exit->code(), 4);
}

TEST_F(RequeueTest, ANewAgentKnowsThatTheRunWaited) {
  Record(0, 3);
  EXPECT_EQ(See("PENDING"), v1::RUN_STATE_PENDING);
  backend_ = MakeBackend();
  EXPECT_EQ(See(std::nullopt), v1::RUN_STATE_PENDING);
}

TEST_F(RequeueTest, ARecordYoungerThanTheQueuesAnswerCounts) {
  Record(0, 3);
  const std::string record = RunPaths(root_, run_.run_key).exit_record();
  std::filesystem::rename(record, root_ + "/record");
  AddCommand("squeue", fmt::format("cat {0}/queue; mv {0}/record {1}", root_, record));
  EXPECT_EQ(See("PENDING"), v1::RUN_STATE_PENDING);
  ASSERT_TRUE(std::filesystem::exists(record));
  AddCommand("squeue", fmt::format("exec cat {}/queue", root_));
  EXPECT_EQ(See("FAILED"), v1::RUN_STATE_FAILED);
  ASSERT_TRUE(last_.exit.has_value());
  EXPECT_EQ(last_.exit->code(), 3);
}

}  // namespace
}  // namespace muster::slurm
