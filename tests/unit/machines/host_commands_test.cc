// Tests the commands of muster-supervisor that the agent gives on a host over SSH.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agents/machines/host_report.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_records.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/host_commands_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

TEST_F(HostCommandsTest, ARunIsStartedAndItsEndReported) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "echo $CUDA_VISIBLE_DEVICES; exit 3")));
  const RankReport end = AwaitEnd("k-1-1");
  EXPECT_EQ(end.stage, HostStage::kEnded);
  EXPECT_EQ(end.exit->status, 3);
  EXPECT_EQ(ReadAll(DirectoryOf("k-1-1") + "/stdout"), "0,1\n");
}

TEST_F(HostCommandsTest, ARunThatIsStartedTwiceRunsOnce) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 0.2")));
  EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 0.2")));
  AwaitEnd("k-1-1");
  EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 0.2")));
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, StartsAtTheSameTimeRunItOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([this] { EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 0.2"))); });
  for (std::thread& thread : threads) thread.join();
  AwaitEnd("k-1-1");
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, ARunThatHasRemovedItsClaimIsNotStartedAgain) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 1000")));
  while (Report("k-1-1", HostStage::kClaimed).stage < HostStage::kStarted) {
  }
  AwaitRan();
  for (const char* name : {kClaimFile, kStartedFile})
    std::filesystem::remove(DirectoryOf("k-1-1") + "/" + name);
  EXPECT_TRUE(IsDone(Start("k-1-1", "sleep 1000")));
  EXPECT_EQ(ListSupervisors().count(DirectoryOf("k-1-1")), 1);
  EXPECT_EQ(ReadAll(dir_ / "ran"), "x\n");
}

TEST_F(HostCommandsTest, AStopEndsTheRunAndSaysSo) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
  EXPECT_TRUE(IsDone(Give({"stop", DirectoryOf("k-1-1")})));
  EXPECT_EQ(AwaitEnd("k-1-1").exit->cause, ExitRecord::Cause::kCanceled);
}

TEST_F(HostCommandsTest, AStopThatCannotLeaveItsNoteIsDoneAllTheSame) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
  std::filesystem::create_symlink("/nowhere/at/all", DirectoryOf("k-1-1") + "/" + kCancelFile);
  EXPECT_TRUE(IsDone(Give({"stop", DirectoryOf("k-1-1")})));
  EXPECT_EQ(AwaitEnd("k-1-1").exit->cause, ExitRecord::Cause::kTerminated);
}

TEST_F(HostCommandsTest, ARunThatIsStoppedBeforeItsStartNeverStarts) {
  EXPECT_TRUE(IsDone(Give({"stop", DirectoryOf("k-1-1")})));
  EXPECT_TRUE(IsDone(Start("k-1-1", "true")));
  const RankReport end = AwaitEnd("k-1-1");
  EXPECT_EQ(end.exit->phase, ExitRecord::Phase::kQueue);
  EXPECT_EQ(end.exit->cause, ExitRecord::Cause::kCanceled);
  EXPECT_GT(end.exit->end_us, 0);
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/exit")) << "its claim tells all, made in one step";
  EXPECT_FALSE(Exists(dir_ / "ran"));
}

TEST_F(HostCommandsTest, ASupervisorThatIsKilledIsReportedAndItsProgramsAreGone) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
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
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
  // No descriptor is left to read a record with.
  const std::vector<HostAnswer> answers = Talk(
      {"/bin/sh", "-c", "ulimit -n 4; exec \"$0\" \"$@\"", Program(), "watch", runs_},
      Request({"report", "1"}, fmt::format("c {}\n", DirectoryOf("k-1-1")), absl::Milliseconds(1)));
  ASSERT_EQ(answers.size(), 1);
  const auto report = HostReport::Decode(answers[0].output);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->runs.empty()) << LetterOf(report->runs[0].stage);
  EXPECT_TRUE(ListSupervisors().contains(DirectoryOf("k-1-1"))) << "and nothing is done to it";
}

TEST_F(HostCommandsTest, NothingIsSaidOfARunWhoseContainerMayBeThere) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
  while (Report("k-1-1", HostStage::kClaimed).stage < HostStage::kStarted) {
  }
  kill(ListSupervisors()[DirectoryOf("k-1-1")].owner.pid, SIGKILL);
  std::ofstream(DirectoryOf("k-1-1") + "/containers") << "docker muster-k-1-1.7\n";
  const std::string tool = dir_ / "docker";
  ASSERT_TRUE(host_.WriteFile(tool, "#!/bin/sh\nexit 1\n", {.mode = 0755}).ok());
  const std::string old_path = getenv("PATH");
  setenv("PATH", (dir_.path() + ":" + old_path).c_str(), 1);
  EXPECT_EQ(Report("k-1-1", HostStage::kStarted, 1).run_key, "") << "a report without runs";
  // It lists none.
  ASSERT_TRUE(host_.WriteFile(tool, "#!/bin/sh\ntest \"$1\" = ps\n", {.mode = 0755}).ok());
  EXPECT_EQ(Report("k-1-1", HostStage::kStarted).stage, HostStage::kVanished);
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
  EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000")));
  while (Report("k-1-1", HostStage::kClaimed).stage < HostStage::kStarted) {
  }
  std::filesystem::remove(DirectoryOf("k-1-1") + "/" + kStartedFile);
  std::thread stopper([this] { EXPECT_TRUE(IsDone(Give({"stop", DirectoryOf("k-1-1")}))); });
  // It waits for the end.
  EXPECT_EQ(Report("k-1-1", HostStage::kStarted).stage, HostStage::kEnded);
  stopper.join();
}

TEST_F(HostCommandsTest, AReportEndsWhenThereIsALaterQuestion) {
  const std::string question = Request({"report", "1"}, "", absl::Hours(1));
  const std::string later = Request({"again", "2"});
  EXPECT_EQ(Talk({Program(), "watch", runs_}, question + later).size(), 1);
  EXPECT_EQ(Talk({Program(), "watch", runs_}, later + question).size(), 1) << "known before";
  const std::string short_one = Request({"report", "2"}, "", absl::Milliseconds(1));
  EXPECT_EQ(Talk({Program(), "watch", runs_}, question + later + short_one).size(), 2);
}

TEST_F(HostCommandsTest, AReportTellsOfARunWhoseDirectoryComesLater) {
  std::thread starter([this] { EXPECT_TRUE(IsDone(Start("k-1-1", "exec sleep 1000"))); });
  EXPECT_GE(Report("k-1-1", HostStage::kAbsent).stage, HostStage::kClaimed);
  starter.join();
}

TEST_F(HostCommandsTest, AWatchEndsWithTheDirectoryOfRuns) {
  std::thread remover([this] { std::filesystem::remove_all(runs_); });
  const auto result = host_.Run({.argv = {Program(), "watch", runs_},
                                 .stdin_data = Request({"report", "1"}, "", absl::Hours(1)),
                                 .timeout = kPatience});
  remover.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, kHostFailed);
  EXPECT_THAT(result->stderr_data, HasSubstr(runs_));
}

TEST_F(HostCommandsTest, EachCommandHasItsAnswer) {
  const std::vector<HostAnswer> answers =
      Talk({Program(), "serve"}, Request({"stop", DirectoryOf("k-1-1")}) + Request({"limits"}) +
                                     Request({"no-such-command"}));
  ASSERT_EQ(answers.size(), 3);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(), IsDone), 2);
}

TEST_F(HostCommandsTest, WhatIsNoFrameEndsTheService) {
  EXPECT_TRUE(
      Talk({Program(), "serve"}, "GET / HTTP/1.1\r\nHost: a-host-of-the-cluster\r\n").empty());
}

TEST_F(HostCommandsTest, AHundredCommandsAtOnceAreAllAnswered) {
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    const std::string key = fmt::format("k-{}-1", i);
    requests += Request({"start", DirectoryOf(key), ""}, Spec(key, "true").Encode());
  }
  const std::vector<HostAnswer> answers = Talk({Program(), "serve"}, requests);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(), IsDone), 100);
  // Their supervisors still write into the directory that goes with the test.
  for (int i = 0; i < 100; ++i) AwaitEnd(fmt::format("k-{}-1", i));
}

TEST_F(HostCommandsTest, AHostThatCannotStartSaysWithWhichFile) {
  std::filesystem::remove_all(runs_);
  const HostAnswer result = Start("k-1-1", "true");
  EXPECT_EQ(result.exit_code, kHostFailed);
  EXPECT_THAT(result.complaint, HasSubstr(DirectoryOf("k-1-1")));
  EXPECT_THAT(result.complaint, HasSubstr("No such file"));
}

TEST_F(HostCommandsTest, ASpecThatIsCutStartsNothing) {
  const std::string whole = Spec("k-1-1", "true").Encode();
  const HostAnswer result =
      Give({"start", DirectoryOf("k-1-1"), ""}, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(result.exit_code, kHostFailed);
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1")));
}

TEST_F(HostCommandsTest, CleaningLeavesTheUsersFiles) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "true")));
  AwaitEnd("k-1-1");
  std::ofstream(DirectoryOf("k-1-1") + "/work/mine") << "x";
  EXPECT_TRUE(IsDone(Give({"clean"}, DirectoryOf("k-1-1") + "\n")));
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/spec"));
  EXPECT_TRUE(Exists(DirectoryOf("k-1-1") + "/stdout"));
  EXPECT_TRUE(IsDone(Give({"clean-logs"}, DirectoryOf("k-1-1") + "\n")));
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1") + "/stdout"));
  EXPECT_TRUE(Exists(DirectoryOf("k-1-1") + "/work/mine"));
  EXPECT_EQ(Give({"clean-logs"}, "/etc/..\n").exit_code, kHostFailed);
}

}  // namespace
}  // namespace muster::machines
