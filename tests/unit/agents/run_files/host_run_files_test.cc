// Tests files of runs through the script that is sent to hosts, which runs on this machine here;
// over SSH tests/integration/test_copy_hosts.py has it.
#include "agents/core/host_run_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <thread>

#include "agents/hosts/local_host.h"
#include "tests/unit/agents/run_files/run_files_fixture.h"

namespace muster::agents {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Plays this machine, which may be told to fail, and at whose commands the test may do something.
class WatchedHost final : public hosts::LocalHost {
 public:
  explicit WatchedHost(std::function<absl::Status(int)> before) : before_(std::move(before)) {}
  std::string Name() const override { return "10.0.0.7:22"; }
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override {
    if (absl::Status s = before_(++commands_); !s.ok()) return s;
    return LocalHost::Run(command);
  }

 private:
  const std::function<absl::Status(int)> before_;
  int commands_ = 0;
};

class HostRunFilesTest : public RunFilesTest {
 protected:
  // `before` gets the number of each command.
  std::unique_ptr<RunFiles> Open(std::function<absl::Status(int)> before = nullptr) {
    auto host = std::make_unique<WatchedHost>([this, before](int number) {
      commands_ = number;
      return before == nullptr ? absl::OkStatus() : before(number);
    });
    return MakeHostRunFiles(
        std::move(host),
        {.host_title = "host gpu7", .root = root_.string(), .directory = "run/work"});
  }
  // Returns the messages that a receiver gets, to the last byte.
  static std::vector<std::string> Messages(RunFiles* files, const std::string& path) {
    TakingLink link(10'000);
    const auto sent = SendFiles(files, path, &link);
    EXPECT_TRUE(sent.ok()) << path << ": " << sent.status();
    return link.messages_;
  }

  int commands_ = 0;
};

TEST_F(HostRunFilesTest, WhatIsSentIsWhatThisMachineWouldSendOfIt) {
  for (const char* name : {"-n", "--help", "a b", "tail\n", "new\nline", "q'u\"o$te`s\\", "*",
                           "\xff\xfe", "dir/-rf/deep", "dir/x", "zz", "%s", "~", ".hidden"}) {
    Write(name, std::string("content of ") + name + std::string("\0\n\n", 3));
  }
  Write("empty", "");
  Write("large", std::string(kMaxReadAheadBytes + 12'345, 'x') + "\n");
  Write("in/e\n/f", "1");
  chmod((work_ / "zz").c_str(), 0700);
  chmod((work_ / "dir/x").c_str(), 0755);
  fs::create_directories(work_ / "no files");
  fs::create_symlink("-n", work_ / "inside");
  fs::create_directory_symlink("dir", work_ / "to dir");
  fs::create_symlink("to dir/../zz", work_ / "chain");
  fs::create_symlink("odd\ntarget\n", work_ / "dangling");
  fs::create_symlink("/etc/passwd", work_ / "outside");
  fs::create_symlink("../../x", work_ / "above");
  mkfifo((work_ / "pipe").c_str(), 0600);
  for (const char* path : {"", "dir", "to dir", "inside", "chain", "large", "in/e\n", "new\nline",
                           "tail\n", "to dir/-rf/deep", "--help"}) {
    // The texts are too long for a message of EXPECT_EQ.
    EXPECT_TRUE(Messages(Open().get(), path) == Messages(OpenLocal().get(), path)) << path;
  }
}

TEST_F(HostRunFilesTest, NoPathLeadsOutOfTheWorkingDirectory) {
  std::ofstream(root_ / "secret") << "hush";
  fs::create_directories(root_ / "run/work-too");
  std::ofstream(root_ / "run/work-too/secret") << "hush";
  fs::create_symlink(root_ / "secret", work_ / "absolute");
  fs::create_symlink("../../secret", work_ / "relative");
  fs::create_directory_symlink("../..", work_ / "above");
  fs::create_directory_symlink("../work-too", work_ / "sibling");
  fs::create_directory_symlink("/proc/self/root", work_ / "magic");
  fs::create_symlink("round", work_ / "round");
  const auto files = Open();
  for (const char* path : {"absolute", "relative", "above/secret", "sibling/secret", "magic/etc",
                           "round", "../../secret", ".."}) {
    EXPECT_EQ(ReasonOf(files->LookAt(path, true).status()), "PATH_LEADS_OUT") << path;
    EXPECT_EQ(ReasonOf(files->Read(path, 0, 10).status()), "PATH_LEADS_OUT") << path;
    EXPECT_EQ(ReasonOf(files->List(path).status()), "PATH_LEADS_OUT") << path;
  }
  EXPECT_EQ(ReasonOf(files->LookAt("nothing", true).status()), "PATH_NOT_FOUND");
  EXPECT_EQ(ReasonOf(files->Read("nothing/below", 0, 1).status()), "PATH_NOT_FOUND");
}

TEST_F(HostRunFilesTest, ADirectoryThatTheRunExchangesForALinkGivesNothingAway) {
  std::ofstream(root_ / "secret") << "hush";
  Write("d/secret", "mine");
  fs::create_directory_symlink(root_, work_ / "l");
  std::atomic<bool> stop = false;
  std::thread exchanging([&] {
    while (!stop) {
      renameat2(AT_FDCWD, (work_ / "d").c_str(), AT_FDCWD, (work_ / "l").c_str(), RENAME_EXCHANGE);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto read = Open()->Read(i % 2 == 0 ? "d/secret" : "l/secret", 0, 10);
    EXPECT_EQ(read.ok() ? *read : "mine", "mine");
  }
  stop = true;
  exchanging.join();
}

TEST_F(HostRunFilesTest, AFileThatTheRunExchangesForALinkGivesNothingAway) {
  std::ofstream(root_ / "secret") << "hush";
  Write("f", "mine");
  fs::create_symlink("../../secret", work_ / "l");
  std::atomic<bool> stop = false;
  std::thread exchanging([&] {
    while (!stop) {
      renameat2(AT_FDCWD, (work_ / "f").c_str(), AT_FDCWD, (work_ / "l").c_str(), RENAME_EXCHANGE);
    }
  });
  for (int i = 0; i < 150; ++i) {
    const auto read = Open()->Read(i % 2 == 0 ? "f" : "l", 0, 10);
    EXPECT_EQ(read.ok() ? *read : "mine", "mine");
  }
  stop = true;
  exchanging.join();
}

TEST_F(HostRunFilesTest, AWorkingDirectoryThatIsALinkOrGoneIsNone) {
  fs::remove_all(work_);
  EXPECT_THAT(Open()->LookAt("x", true).status().message(),
              HasSubstr("has no working directory any more"));
  fs::create_directory_symlink("/etc", work_);
  EXPECT_EQ(ReasonOf(Open()->LookAt("passwd", true).status()), "PATH_LEADS_OUT");
  EXPECT_EQ(ReasonOf(Open()->Read("passwd", 0, 10).status()), "PATH_LEADS_OUT");
}

TEST_F(HostRunFilesTest, APipeInPlaceOfAFileIsNotWaitedFor) {
  mkfifo((work_ / "pipe").c_str(), 0600);
  EXPECT_EQ(ReasonOf(Open()->Read("pipe", 0, 10).status()), "PATH_NOT_FOUND");
}

TEST_F(HostRunFilesTest, ManySmallFilesCostFewCommands) {
  for (int i = 0; i < 600; ++i) Write("files/" + std::to_string(i), std::to_string(i));
  Write("files/30-in-between/x", "1");
  EXPECT_EQ(Sent(Open().get(), "files").size(), 2 * 601 + 2u);
  EXPECT_LE(commands_, 8);
}

TEST_F(HostRunFilesTest, TheNextPieceIsReadWhileThisOneIsSentAndNoneBehindTheEnd) {
  Write("large", std::string(3 * kFirstReadAheadBytes, 'a'));
  auto files = Open();
  ASSERT_TRUE(files->LookAt("large", true).ok());
  ASSERT_TRUE(files->Read("large", 0, 10).ok());
  // Its end waits for what is on its way.
  files.reset();
  EXPECT_EQ(commands_, 3);
  files = Open();
  EXPECT_EQ(Sent(files.get(), "large").size(), 1 + 12u);
  files.reset();
  EXPECT_EQ(commands_, 3);
}

TEST_F(HostRunFilesTest, AFileThatIsReplacedWhileItIsReadIsAnErrorAndNoMixture) {
  Write("large", std::string(3 * kFirstReadAheadBytes, 'a'));
  const auto files = Open();
  ASSERT_TRUE(files->Read("large", 0, 10).ok());
  Write("new", std::string(3 * kFirstReadAheadBytes, 'b'));
  fs::rename(work_ / "new", work_ / "large");
  const auto rest = files->Read("large", kFirstReadAheadBytes, 10);
  EXPECT_TRUE(absl::IsAborted(rest.status())) << rest.status();
  EXPECT_THAT(rest.status().message(), HasSubstr("\"large\" was replaced"));
  // A reader that begins again gets the new one.
  EXPECT_EQ(*files->Read("large", 0, 2), "bb");
}

TEST_F(HostRunFilesTest, AFileThatGrowsIsSentAsItWasAndOneThatShrinksEnds) {
  const size_t size = 2 * kFirstReadAheadBytes;
  Write("grows", std::string(size, 'a'));
  Write("shrinks", std::string(size, 'a'));
  const auto files = Open([&](int number) {
    if (number == 3) fs::resize_file(work_ / "grows", 2 * size);
    if (number == 5) fs::resize_file(work_ / "shrinks", size / 4);
    return absl::OkStatus();
  });
  std::string bytes;
  for (const std::string& part : Sent(files.get(), "grows"))
    if (part.starts_with('+')) bytes += part.substr(1);
  EXPECT_EQ(bytes, std::string(size, 'a'));
  bytes.clear();
  for (const std::string& part : Sent(files.get(), "shrinks"))
    if (part.starts_with('+')) bytes += part.substr(1);
  EXPECT_LT(bytes.size(), size);
}

TEST_F(HostRunFilesTest, AHostThatGoesAwayEndsTheCopyAndIsNamed) {
  for (const char* name : {"a/1", "b/2", "c/3"}) Write(name, "x");
  const auto files = Open([](int number) {
    if (number < 4) return absl::OkStatus();
    return hosts::LostError("/bin/sh", absl::UnavailableError("the connection was lost"));
  });
  TakingLink link(100);
  const auto sent = SendFiles(files.get(), "", &link);
  EXPECT_TRUE(absl::IsUnavailable(sent.status())) << sent.status();
  EXPECT_EQ(sent.status().message(),
            "host gpu7 (10.0.0.7:22) sends no files now: the connection was lost");
  EXPECT_THAT(link.taken_, ElementsAre("d ", "d a"));
}

TEST_F(HostRunFilesTest, AHostThatDoesNotAnswerInTimeIsNamed) {
  const auto files =
      Open([](int) { return absl::DeadlineExceededError("\"/bin/sh\" did not end within 30s"); });
  const absl::Status status = files->Read("x", 0, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("host gpu7 (10.0.0.7:22)"));
  EXPECT_THAT(status.message(), HasSubstr("did not read \"x\" within 30s"));
}

TEST_F(HostRunFilesTest, WhatIsListedIsForgottenWhenTheWalkHasPassed) {
  Write("a/x", "1");
  const auto files = Open();
  ASSERT_TRUE(files->List("").ok());
  ASSERT_TRUE(files->List("a").ok());
  const int before = commands_;
  EXPECT_TRUE(files->LookAt("a/x", false).ok());
  EXPECT_EQ(commands_, before);
  fs::create_directories(work_ / "b");
  ASSERT_TRUE(files->List("b").ok());
  EXPECT_TRUE(files->LookAt("a/x", false).ok());
  EXPECT_EQ(commands_, before + 2);
}

TEST_F(HostRunFilesTest, AResultsDirectoryIsReadLikewise) {
  Write("model", "weights");
  const auto results =
      MakeHostResults(std::make_unique<hosts::LocalHost>(), "host gpu7", work_.string() + "/");
  EXPECT_THAT(Sent(results.get(), ""), ElementsAre("d ", "f model", "+weights"));
  const auto gone =
      MakeHostResults(std::make_unique<hosts::LocalHost>(), "host gpu7", (root_ / "gone").string());
  EXPECT_THAT(std::string(gone->LookAt("", true).status().message()), HasSubstr("there is no"));
}

}  // namespace
}  // namespace muster::agents
