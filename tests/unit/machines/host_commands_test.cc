// What the agent does on a host over SSH, one command of muster-supervisor each.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agents/hosts/local_host.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_records.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

class HostCommandsTest : public ::testing::Test {
 protected:
  HostCommandsTest() { std::filesystem::create_directories(runs_); }
  ~HostCommandsTest() override {
    for (const auto& [directory, claim] : ListSupervisors()) {
      if (directory.starts_with(runs_)) kill(claim.owner.pid, SIGKILL);
    }
  }

  hosts::CommandResult Give(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                                    "muster-supervisor");
    const auto result =
        host_.Run({.argv = std::move(words), .stdin_data = input, .timeout = kPatience});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : hosts::CommandResult{};
  }

  std::string DirectoryOf(const std::string& key) const { return runs_ + "/" + key; }
  // A run that appends a word to the file `ran`, then waits in `rest`.
  RunSpec Spec(const std::string& key, const std::string& rest) const {
    RunSpec spec;
    spec.run_key = key;
    spec.command_words = {"/bin/sh", "-c", fmt::format("echo x >>{}; {}", dir_ / "ran", rest)};
    spec.environment = {"MUSTER_RUN_DIR=" + DirectoryOf(key)};
    spec.working_directory = "/";
    spec.grace_ms = 1000;
    return spec;
  }
  hosts::CommandResult Start(const std::string& key, const std::string& rest) {
    return Give({"start", DirectoryOf(key), "0,1", "1", "CUDA_VISIBLE_DEVICES=0,1"},
                Spec(key, rest).Encode());
  }
  // Of one run, once it is at another stage than `known`.
  RankReport Report(const std::string& key, HostStage known, int patience_ms = 60'000) {
    const auto result = Give({"report", runs_, "1", std::to_string(patience_ms)},
                             fmt::format("{} {}\n", LetterOf(known), DirectoryOf(key)));
    const auto report = HostReport::Decode(result.stdout_data);
    EXPECT_TRUE(report.has_value()) << result.stderr_data;
    return report.has_value() && !report->runs.empty() ? report->runs[0] : RankReport{};
  }
  RankReport AwaitEnd(const std::string& key) {
    RankReport report = {.run_key = key};
    while (report.stage < HostStage::kEnded) report = Report(key, report.stage);
    return report;
  }

  hosts::TempDir dir_;
  const std::string runs_ = dir_ / "runs";
  hosts::LocalHost host_;
};

TEST_F(HostCommandsTest, ARunIsStartedAndItsEndReported) {
  EXPECT_TRUE(Start("k-1-1", "echo $CUDA_VISIBLE_DEVICES; exit 3").ok());
  const RankReport end = AwaitEnd("k-1-1");
  EXPECT_EQ(end.stage, HostStage::kEnded);
  EXPECT_EQ(end.exit->status, 3);
  EXPECT_EQ(ReadAll(DirectoryOf("k-1-1") + "/stdout"), "0,1\n");
}

TEST_F(HostCommandsTest, ARunThatIsStartedTwiceRunsOnce) {
  EXPECT_TRUE(Start("k-1-1", "sleep 0.2").ok());
  EXPECT_TRUE(Start("k-1-1", "sleep 0.2").ok());
  AwaitEnd("k-1-1");
  EXPECT_TRUE(Start("k-1-1", "sleep 0.2").ok());
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, StartsAtTheSameTimeRunItOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([this] { EXPECT_TRUE(Start("k-1-1", "sleep 0.2").ok()); });
  for (std::thread& thread : threads) thread.join();
  AwaitEnd("k-1-1");
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, ARunThatHasRemovedItsClaimIsNotStartedAgain) {
  EXPECT_TRUE(Start("k-1-1", "sleep 1000").ok());
  while (Report("k-1-1", HostStage::kClaimed).stage < HostStage::kStarted) {
  }
  for (const char* name : {kClaimFile, kStartedFile})
    std::filesystem::remove(DirectoryOf("k-1-1") + "/" + name);
  EXPECT_TRUE(Start("k-1-1", "sleep 1000").ok());
  EXPECT_EQ(ListSupervisors().count(DirectoryOf("k-1-1")), 1);
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, AStopEndsTheRunAndSaysSo) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  EXPECT_TRUE(Give({"stop", DirectoryOf("k-1-1")}).ok());
  EXPECT_EQ(AwaitEnd("k-1-1").exit->cause, ExitRecord::Cause::kCanceled);
}

TEST_F(HostCommandsTest, AStopThatCannotLeaveItsNoteIsDoneAllTheSame) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  std::filesystem::create_symlink("/nowhere/at/all", DirectoryOf("k-1-1") + "/" + kCancelFile);
  EXPECT_TRUE(Give({"stop", DirectoryOf("k-1-1")}).ok());
  EXPECT_EQ(AwaitEnd("k-1-1").exit->cause, ExitRecord::Cause::kTerminated);
}

TEST_F(HostCommandsTest, ARunThatIsStoppedBeforeItsStartNeverStarts) {
  EXPECT_TRUE(Give({"stop", DirectoryOf("k-1-1")}).ok());
  EXPECT_TRUE(Start("k-1-1", "true").ok());
  const RankReport end = AwaitEnd("k-1-1");
  EXPECT_EQ(end.exit->phase, ExitRecord::Phase::kQueue);
  EXPECT_EQ(end.exit->cause, ExitRecord::Cause::kCanceled);
  EXPECT_GT(end.exit->end_us, 0);
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/exit")) << "its claim tells all, made in one step";
  EXPECT_FALSE(Exists(dir_ / "ran"));
}

TEST_F(HostCommandsTest, ASupervisorThatIsKilledIsReportedAndItsProgramsAreGone) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  RankReport report;
  while (report.stage < HostStage::kStarted) report = Report("k-1-1", HostStage::kClaimed);
  const pid_t program = report.started->process.pid;
  kill(ListSupervisors()[DirectoryOf("k-1-1")].owner.pid, SIGKILL);
  const RankReport end = Report("k-1-1", HostStage::kStarted);
  EXPECT_EQ(end.stage, HostStage::kVanished);
  EXPECT_THAT(end.detail, HasSubstr("left no exit record"));
  EXPECT_TRUE(AwaitDeath(program));
}

TEST_F(HostCommandsTest, NothingIsSaidOfARunThatCannotBeLookedAt) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  const std::string supervisor =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  // No descriptor is left to read a record with.
  const auto result = host_.Run({.argv = {"/bin/sh", "-c", "ulimit -n 4; exec \"$0\" \"$@\"",
                                          supervisor, "report", runs_, "1", "1"},
                                 .stdin_data = fmt::format("c {}\n", DirectoryOf("k-1-1")),
                                 .timeout = kPatience});
  ASSERT_TRUE(result.ok() && result->ok()) << result.status();
  const auto report = HostReport::Decode(result->stdout_data);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->runs.empty()) << LetterOf(report->runs[0].stage);
  EXPECT_TRUE(ListSupervisors().contains(DirectoryOf("k-1-1"))) << "and nothing is done to it";
}

TEST_F(HostCommandsTest, NothingIsSaidOfARunWhoseContainerMayBeThere) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  kill(ListSupervisors()[DirectoryOf("k-1-1")].owner.pid, SIGKILL);
  std::ofstream(DirectoryOf("k-1-1") + "/containers") << "docker muster-k-1-1.7\n";
  const std::string tool = dir_ / "docker";
  ASSERT_TRUE(host_.WriteFile(tool, "#!/bin/sh\nexit 1\n", {.mode = 0755}).ok());
  const std::string old_path = getenv("PATH");
  setenv("PATH", (dir_.path() + ":" + old_path).c_str(), 1);
  EXPECT_EQ(Report("k-1-1", HostStage::kClaimed, 1).run_key, "") << "a report without runs";
  // It lists none.
  ASSERT_TRUE(host_.WriteFile(tool, "#!/bin/sh\ntest \"$1\" = ps\n", {.mode = 0755}).ok());
  EXPECT_EQ(Report("k-1-1", HostStage::kClaimed).stage, HostStage::kVanished);
  setenv("PATH", old_path.c_str(), 1);
}

TEST_F(HostCommandsTest, ADirectoryThatIsRemovedAfterItsStartIsNoRunThatWaits) {
  EXPECT_EQ(Report("k-1-1", HostStage::kClaimed).stage, HostStage::kVanished);
  EXPECT_EQ(Report("k-2-1", HostStage::kAbsent, 1).stage, HostStage::kAbsent);
}

TEST_F(HostCommandsTest, AClaimFromBeforeTheBootSaysSo) {
  std::filesystem::create_directories(DirectoryOf("k-1-1"));
  const Claim claim = {.owner = {.pid = 1, .start_ticks = 1, .boot_id = "earlier"}, .devices = ""};
  std::ofstream(DirectoryOf("k-1-1") + "/claim") << claim.Encode();
  const RankReport end = Report("k-1-1", HostStage::kAbsent);
  EXPECT_EQ(end.stage, HostStage::kVanished);
  EXPECT_THAT(end.detail, HasSubstr("started anew"));
}

TEST_F(HostCommandsTest, ARunThatRemovesItsRecordsIsNoNews) {
  EXPECT_TRUE(Start("k-1-1", "exec sleep 1000").ok());
  while (Report("k-1-1", HostStage::kClaimed).stage < HostStage::kStarted) {
  }
  std::filesystem::remove(DirectoryOf("k-1-1") + "/" + kStartedFile);
  std::thread stopper([this] { EXPECT_TRUE(Give({"stop", DirectoryOf("k-1-1")}).ok()); });
  // It waits for the end.
  EXPECT_EQ(Report("k-1-1", HostStage::kStarted).stage, HostStage::kEnded);
  stopper.join();
}

TEST_F(HostCommandsTest, AReportEndsWhenThereIsALaterQuestion) {
  std::thread asker([this] { EXPECT_TRUE(Give({"question", runs_, "2"}).ok()); });
  EXPECT_TRUE(Give({"report", runs_, "1", "3600000"}).ok());
  asker.join();
  EXPECT_TRUE(Give({"report", runs_, "1", "3600000"}).ok()) << "one that was there before";
}

TEST_F(HostCommandsTest, AHostThatCannotStartSaysWithWhichFile) {
  std::filesystem::remove_all(runs_);
  const hosts::CommandResult result = Start("k-1-1", "true");
  EXPECT_EQ(result.exit_code, kHostFailed);
  EXPECT_THAT(result.stderr_data, HasSubstr(DirectoryOf("k-1-1")));
  EXPECT_THAT(result.stderr_data, HasSubstr("No such file"));
}

TEST_F(HostCommandsTest, ASpecThatIsCutStartsNothing) {
  const std::string whole = Spec("k-1-1", "true").Encode();
  const hosts::CommandResult result =
      Give({"start", DirectoryOf("k-1-1"), "", "1"}, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(result.exit_code, kHostFailed);
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1")));
}

TEST_F(HostCommandsTest, CleaningLeavesTheUsersFiles) {
  EXPECT_TRUE(Start("k-1-1", "true").ok());
  AwaitEnd("k-1-1");
  std::ofstream(DirectoryOf("k-1-1") + "/work/mine") << "x";
  EXPECT_TRUE(Give({"clean"}, DirectoryOf("k-1-1") + "\n").ok());
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/spec"));
  EXPECT_TRUE(Exists(DirectoryOf("k-1-1") + "/stdout"));
  EXPECT_TRUE(Give({"clean-logs"}, DirectoryOf("k-1-1") + "\n").ok());
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/stdout"));
  EXPECT_TRUE(Exists(DirectoryOf("k-1-1") + "/work/mine"));
  EXPECT_EQ(Give({"clean-logs"}, "/etc/..\n").exit_code, kHostFailed);
}

}  // namespace
}  // namespace muster::machines
