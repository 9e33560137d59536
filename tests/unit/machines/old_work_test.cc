// Tests the removal of files of old runs, on hosts over SSH and on the agent's own machine.
#include "agents/machines/old_work.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>

#include "agents/machines/work_sweeper.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/host_commands_fixture.h"

namespace muster::machines {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// False: not on this file system, or not by this user.
bool SetImmutable(const std::string& path, bool is_immutable) {
  const int fd = open(path.c_str(), O_RDONLY);
  int flags = 0;
  bool is_done = ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
  flags = is_immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  is_done = is_done && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
  close(fd);
  return is_done;
}

// Runs that left files in work/, in directories of their own.
class OldWorkTest : public HostCommandsTest {
 protected:
  std::string WorkOf(const std::string& key) const { return DirectoryOf(key) + "/work"; }
  // Leaves a work directory with these records beside its files, which nobody has touched for
  // `age`.
  void Leave(const std::string& key, const std::vector<std::string>& records,
             std::chrono::hours age) {
    std::filesystem::create_directories(WorkOf(key));
    std::ofstream(WorkOf(key) + "/mine") << "x";
    for (const std::string& record : records) std::ofstream(DirectoryOf(key) + "/" + record) << "x";
    std::filesystem::last_write_time(DirectoryOf(key),
                                     std::filesystem::file_time_type::clock::now() - age);
  }
  OldWork Remove(std::chrono::hours keep, int budget_ms = 60'000, const std::string& after = "") {
    const auto keep_s = std::chrono::duration_cast<std::chrono::seconds>(keep).count();
    const auto result =
        Give({"old-work", runs_, std::to_string(keep_s), std::to_string(budget_ms), after});
    const std::optional<OldWork> found = OldWork::Decode(result.output);
    EXPECT_TRUE(found.has_value()) << result.complaint;
    return found.value_or(OldWork{});
  }
};

TEST_F(OldWorkTest, FilesOfRunsThatAreForgottenForLongGo) {
  Leave("old-1-1", {"claim", "exit", "stdout", "stderr"}, std::chrono::hours(3));
  Leave("new-1-1", {"claim", "exit", "stdout", "stderr"}, std::chrono::hours(1));
  EXPECT_EQ(Remove(std::chrono::hours(2)).removed, 1);
  EXPECT_FALSE(Exists(WorkOf("old-1-1")));
  EXPECT_TRUE(Exists(DirectoryOf("old-1-1") + "/stdout"));
  EXPECT_TRUE(Exists(WorkOf("new-1-1") + "/mine"));
}

TEST_F(OldWorkTest, WhatIsKnownOfARunOrHasYetToStartStays) {
  for (const char* record : {"spec", "started", "cancel"})
    Leave(fmt::format("{}-1-1", record), {"claim", record}, std::chrono::hours(3));
  Leave("unclaimed-1-1", {}, std::chrono::hours(3));
  const OldWork found = Remove(std::chrono::hours(2));
  EXPECT_EQ(found.removed, 0);
  EXPECT_EQ(found.trouble, "");
  for (const char* key : {"spec-1-1", "started-1-1", "cancel-1-1", "unclaimed-1-1"})
    EXPECT_TRUE(Exists(WorkOf(key) + "/mine")) << key;
}

TEST_F(OldWorkTest, ADirectoryThatIsThereOnlyForItsFilesGoesWithThem) {
  EXPECT_TRUE(IsDone(Start("k-1-1", "true")));
  AwaitEnd("k-1-1");
  std::ofstream(WorkOf("k-1-1") + "/mine") << "x";
  EXPECT_TRUE(IsDone(Give({"clean-logs"}, DirectoryOf("k-1-1") + "\n")));
  EXPECT_EQ(Remove(std::chrono::hours(-1)).removed, 1);
  EXPECT_FALSE(Exists(DirectoryOf("k-1-1")));
}

TEST_F(OldWorkTest, LinksAreNotFollowedAndClosedDirectoriesAreOpened) {
  const std::string outside = dir_ / "outside";
  std::filesystem::create_directories(outside);
  std::ofstream(outside + "/theirs") << "x";
  Leave("k-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  std::filesystem::create_directory_symlink(outside, WorkOf("k-1-1") + "/link");
  const std::string closed = WorkOf("k-1-1") + "/closed";
  std::filesystem::create_directories(closed + "/below");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const OldWork found = Remove(std::chrono::hours(2));
  EXPECT_EQ(found.trouble, "");
  EXPECT_FALSE(Exists(WorkOf("k-1-1")));
  EXPECT_TRUE(Exists(outside + "/theirs"));
}

TEST_F(OldWorkTest, WhatTakesLongerGoesOnWithTheNextStep) {
  Leave("k-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  EXPECT_TRUE(Remove(std::chrono::hours(2), /*budget_ms=*/0).is_more);
  EXPECT_TRUE(Exists(WorkOf("k-1-1")));
  EXPECT_FALSE(Remove(std::chrono::hours(2)).is_more);
  EXPECT_FALSE(Exists(WorkOf("k-1-1")));
}

TEST_F(OldWorkTest, EachStepRemovesSomeOfADirectoryThatTakesManySteps) {
  Leave("k-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  constexpr int kFiles = 500;
  for (int i = 1; i < kFiles; ++i) std::ofstream(fmt::format("{}/{}", WorkOf("k-1-1"), i)) << "x";
  const auto left = [&] {
    return std::distance(std::filesystem::directory_iterator(WorkOf("k-1-1")), {});
  };
  EXPECT_TRUE(Remove(std::chrono::hours(2), /*budget_ms=*/0).is_more);
  EXPECT_EQ(left(), kFiles - 1) << "no time, but for one of them";
  EXPECT_TRUE(Remove(std::chrono::hours(2), /*budget_ms=*/0).is_more);
  EXPECT_EQ(left(), kFiles - 2);
}

TEST_F(OldWorkTest, RunsBehindOneThatTakesLongGetTheirTurn) {
  for (const char* key : {"a-1-1", "b-1-1", "c-1-1"}) {
    Leave(key, {"claim", "stdout"}, std::chrono::hours(3));
    std::ofstream(WorkOf(key) + "/other") << "x";
  }
  std::string last;
  for (const char* key : {"a-1-1", "b-1-1", "c-1-1", "a-1-1"}) {
    last = Remove(std::chrono::hours(2), /*budget_ms=*/0, last).last;
    EXPECT_EQ(last, key);
  }
  EXPECT_TRUE(std::filesystem::is_empty(WorkOf("a-1-1")));
  EXPECT_FALSE(std::filesystem::is_empty(WorkOf("b-1-1")));
}

TEST_F(OldWorkTest, AStepThatHasRemovedNothingIsFollowedByNoneAtOnce) {
  Leave("k-1-1", {"claim", "stdout", "spec"}, std::chrono::hours(3));
  const OldWork found = Remove(std::chrono::hours(2), /*budget_ms=*/0);
  EXPECT_EQ(found.last, "k-1-1");
  EXPECT_FALSE(found.is_more);
}

TEST_F(OldWorkTest, ATreeThatIsDeeperThanAnyPathGoes) {
  Leave("k-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  constexpr int kLevels = 2000;
  const std::string name(200, 'd');
  int at = open(WorkOf("k-1-1").c_str(), O_PATH | O_DIRECTORY);
  for (int i = 0; i < kLevels; ++i) {
    ASSERT_EQ(mkdirat(at, name.c_str(), 0700), 0);
    close(openat(at, "file", O_CREAT | O_WRONLY, 0600));
    const int below = openat(at, name.c_str(), O_PATH | O_DIRECTORY);
    close(at);
    at = below;
  }
  close(at);
  const OldWork found = Remove(std::chrono::hours(2));
  EXPECT_EQ(found.trouble, "");
  EXPECT_EQ(found.removed, 1);
  EXPECT_FALSE(Exists(WorkOf("k-1-1")));
}

// Runs in a mount namespace of its own, which goes with the shell.
TEST_F(OldWorkTest, WhatIsMountedInItStaysAndIsTold) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may mount";
  const std::string outside = dir_ / "outside";
  std::filesystem::create_directories(outside + "/below");
  std::ofstream(outside + "/below/theirs") << "x";
  std::ofstream(outside + "/file") << "theirs";
  Leave("dir-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  Leave("file-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  Leave("work-1-1", {"claim", "stdout"}, std::chrono::hours(3));
  std::filesystem::create_directories(WorkOf("dir-1-1") + "/data");
  const std::string supervisor =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  const std::string script = fmt::format(
      "mount --bind {0} {1}/data && mount --bind {0}/file {2}/mine && mount --bind {0} {3} && "
      "exec {4} old-work {5} 7200 60000 ''",
      outside, WorkOf("dir-1-1"), WorkOf("file-1-1"), WorkOf("work-1-1"), supervisor, runs_);
  const auto result =
      host_.Run({.argv = {"unshare", "-m", "/bin/sh", "-c", script}, .timeout = kPatience});
  ASSERT_TRUE(result.ok() && result->ok()) << result.status() << result->stderr_data;
  const std::optional<OldWork> found = OldWork::Decode(result->stdout_data);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(Exists(outside + "/below/theirs"));
  EXPECT_EQ(ReadAll(outside + "/file"), "theirs");
  EXPECT_FALSE(Exists(WorkOf("dir-1-1") + "/mine")) << "what is the run's own goes";
  EXPECT_EQ(found->removed, 0);
  EXPECT_EQ(found->stuck, 3);
  EXPECT_THAT(found->trouble, AllOf(HasSubstr(WorkOf("dir-1-1") + "/data\""), HasSubstr("mounted"),
                                    HasSubstr("unmount it")));
  // Nothing is mounted any more, so all of it goes.
  EXPECT_EQ(Remove(std::chrono::hours(2)).removed, 3);
  EXPECT_TRUE(Exists(outside + "/below/theirs"));
}

TEST_F(OldWorkTest, TheFirstFileThatCannotBeRemovedIsToldWithItsOwnError) {
  for (const char* key : {"a-1-1", "b-1-1", "c-1-1"})
    Leave(key, {"claim", "stdout"}, std::chrono::hours(3));
  std::filesystem::create_directories(WorkOf("a-1-1") + "/deep/below");
  const std::string stays[] = {WorkOf("a-1-1") + "/deep/below/stays", WorkOf("b-1-1") + "/mine"};
  for (const std::string& path : stays) {
    std::ofstream(path) << "x";
    if (!SetImmutable(path, true)) GTEST_SKIP() << "no immutable files here";
  }
  const OldWork found = Remove(std::chrono::hours(2));
  for (const std::string& path : stays) EXPECT_TRUE(SetImmutable(path, false));
  EXPECT_EQ(found.removed, 1);
  EXPECT_EQ(found.stuck, 2);
  EXPECT_FALSE(found.is_more);
  EXPECT_THAT(found.trouble, AllOf(HasSubstr("\"" + stays[0] + "\": Operation not permitted"),
                                   HasSubstr("chattr -i")));
}

TEST_F(OldWorkTest, WhatCannotBeListedIsSaid) {
  std::filesystem::remove_all(runs_);
  EXPECT_THAT(Remove(std::chrono::hours(2)).trouble, HasSubstr(runs_));
}

TEST(RareWordsTest, TheSameWordsAreToldOnceInAnHour) {
  constexpr int64_t kHourMs = 3'600'000;
  RareWords words;
  EXPECT_TRUE(words.AreDue("one", 0));
  EXPECT_FALSE(words.AreDue("one", kHourMs - 1));
  EXPECT_TRUE(words.AreDue("another", kHourMs - 1));
  EXPECT_TRUE(words.AreDue("one", kHourMs));
  EXPECT_FALSE(words.AreDue("another", kHourMs));
}

TEST(RareWordsTest, WordsThatAreEachTimeOthersFillNoLog) {
  RareWords words;
  int told = 0;
  for (int i = 0; i < 1000; ++i) told += words.AreDue(std::to_string(i), i) ? 1 : 0;
  EXPECT_LT(told, 50);
}

TEST(SweepStepsTest, AStepBeginsBehindTheOneBeforeAndFollowsAtOnceIfThereIsMore) {
  SweepSteps steps("host", absl::Hours(2));
  EXPECT_EQ(steps.Words("/runs").back(), "");
  EXPECT_TRUE(steps.Take(OldWork{.is_more = true, .last = "k-1-1"}.Encode()));
  EXPECT_EQ(steps.Words("/runs").back(), "k-1-1");
  EXPECT_FALSE(steps.Take(OldWork{}.Encode()));
  EXPECT_EQ(steps.Words("/runs").back(), "");
}

}  // namespace
}  // namespace muster::machines
