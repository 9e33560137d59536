// A file server that hangs, as a host whose listings and directories do not return.
#include "agents/slurm/patient_reads.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/slurm/record_watcher.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/eventually.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// This is short, because the host hangs until the test is over.
constexpr absl::Duration kPatience = absl::Milliseconds(50);

using Hangs = agents::Shared<bool>;

void Set(Hangs* hangs, bool value) {
  hangs->With([value](bool& state) { state = value; });
}

class HangingHost : public hosts::LocalHost {
 public:
  explicit HangingHost(Hangs* hangs) : hangs_(*hangs) {}
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) override {
    AwaitServer();
    return hosts::LocalHost::ListDirectory(path);
  }
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override {
    AwaitServer();
    return hosts::LocalHost::MakeManyDirectories(paths, mode);
  }

 private:
  void AwaitServer() {
    EXPECT_TRUE(hangs_.Eventually([](bool hangs) { return !hangs; })) << "somebody waited for it";
  }

  Hangs& hangs_;
};

TEST(PatientReadsTest, AReadThatHangsIsUnavailableAndSoIsEachUntilItReturns) {
  const hosts::TempDir directory;
  Hangs hangs;
  HangingHost host(&hangs);
  PatientReads reads(&host, kPatience);
  EXPECT_TRUE(reads.ListDirectory(directory.path()).ok());
  Set(&hangs, true);
  const absl::Status first = reads.ListDirectory(directory.path()).status();
  EXPECT_TRUE(absl::IsUnavailable(first));
  EXPECT_THAT(first.message(), HasSubstr(directory.path() + "\" could not be read within 50ms"));
  const absl::Status second = reads.Stat(directory.path()).status();
  EXPECT_TRUE(absl::IsUnavailable(second));
  EXPECT_THAT(second.message(), HasSubstr("an earlier read of the same file server hangs"));
  EXPECT_TRUE(
      absl::IsUnavailable(reads.ReadMany({{directory / "a"}, {directory / "b"}})[1].status()));
  Set(&hangs, false);
  while (!reads.Stat(directory.path()).ok()) std::this_thread::yield();
  EXPECT_TRUE(absl::IsNotFound(reads.ReadFile(directory / "a", 10).status()));
}

TEST(RecordWatcherTest, EndsWhileItsFileServerHangs) {
  const hosts::TempDir directory;
  Hangs hangs;
  HangingHost host(&hangs);
  PatientReads reads(&host, kPatience);
  EXPECT_TRUE(reads.State().ok());
  Set(&hangs, true);
  {
    RecordWatcher watcher(&reads, directory.path(), absl::Milliseconds(1));
    watcher.SetActive(true);
    while (reads.State().ok()) std::this_thread::yield();
  }
  EXPECT_FALSE(reads.State().ok()) << "the watcher waited for it";
  Set(&hangs, false);
  while (!reads.State().ok()) std::this_thread::yield();
}

class HangingRecordsTest : public StubCommandsTest {
 protected:
  // There are two runs: Slurm's job 1 runs, job 2 has ended.
  HangingRecordsTest() {
    std::string rows;
    for (const auto& [job, state] : {std::pair(1, "RUNNING"), std::pair(2, "COMPLETED")}) {
      rows += fmt::format(
          "{0}\\037N/A\\037k7m2-{0}-1\\037{1}\\037None\\037n1\\0371\\037N/A\\037N/A\\0370\\037main"
          "\\037lab\\037normal\\n",
          job, state);
      agents::RunHandle run;
      run.run_key = fmt::format("k7m2-{}-1", job);
      run.external_id = std::to_string(job);
      run.state = v1::RUN_STATE_PENDING;
      runs_.push_back(run);
    }
    AddCommand("squeue", fmt::format("printf '{}'", rows));
    AddCommand("sacct", "");
  }
  std::vector<v1::RunState> StatesSeen(agents::Backend* backend) {
    std::vector<v1::RunState> states;
    const agents::ObserveOutcome outcome = backend->Observe(runs_);
    scheduler_ = outcome.scheduler;
    for (const agents::Observation& seen : outcome.observations) states.push_back(seen.state);
    return states;
  }

  Hangs hangs_;
  std::vector<agents::RunHandle> runs_;
  absl::Status scheduler_;  // of the latest look
};

TEST_F(HangingRecordsTest, OtherStatesAreToldWhileTheFileServerHangs) {
  SlurmConfig config = Config();
  config.read_patience = kPatience;
  config.observe_interval = absl::Milliseconds(1);
  const auto backend =
      CreateSlurmBackend(std::move(config), root_, std::make_unique<HangingHost>(&hangs_));
  StatesSeen(backend.get());  // reads the lists of arrays, once
  Set(&hangs_, true);
  std::vector<v1::RunState> states;
  while (states.empty()) states = StatesSeen(backend.get());  // not each look asks the queue
  EXPECT_THAT(states, ElementsAre(v1::RUN_STATE_RUNNING, v1::RUN_STATE_FINISHING))
      << "the end waits for its record";
  EXPECT_THAT(scheduler_.message(), HasSubstr("has not ended after 50ms: a file server hangs"))
      << "people are told";
  Set(&hangs_, false);
  while (!scheduler_.ok()) StatesSeen(backend.get());
}

TEST_F(HangingRecordsTest, AClaimIsNotWaitedForWithoutAnEnd) {
  SlurmConfig config = Config();
  config.read_patience = kPatience;
  const std::filesystem::path script = RunPaths(config.run_dir, runs_[0].run_key).script();
  std::filesystem::create_directories(script.parent_path());
  std::ofstream(script).flush();
  const auto backend =
      CreateSlurmBackend(std::move(config), root_, std::make_unique<HangingHost>(&hangs_));
  Set(&hangs_, true);
  EXPECT_EQ(backend->Fence(runs_[0]).kind, agents::FenceOutcome::Kind::kNotYet);
  Set(&hangs_, false);
  while (backend->Fence(runs_[0]).kind == agents::FenceOutcome::Kind::kNotYet)
    std::this_thread::yield();
  EXPECT_EQ(backend->Fence(runs_[0]).kind, agents::FenceOutcome::Kind::kNeverBegins);
}

}  // namespace
}  // namespace muster::slurm
