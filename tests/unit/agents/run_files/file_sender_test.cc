#include "agents/core/file_sender.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/agents/run_files/run_files_fixture.h"

namespace muster::agents {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class FileSenderTest : public RunFilesTest {
 protected:
  std::vector<std::string> Sent(const std::string& path) {
    return RunFilesTest::Sent(OpenLocal().get(), path);
  }
};

TEST_F(FileSenderTest, ATreeIsSentInOrderWithWhatIsLeftOut) {
  Write("out/b", "22");
  Write("out/a/x", "1");
  Write("out/empty", "");
  fs::create_symlink("b", work_ / "out/inside");
  fs::create_symlink("/etc/passwd", work_ / "out/outside");
  fs::create_symlink("../../x", work_ / "out/above");
  mkfifo((work_ / "out/pipe").c_str(), 0600);
  EXPECT_THAT(
      Sent("out"),
      ElementsAre("d ", "d a", "f a/x", "+1", "! above FILE_LEFT_OUT_CODE_LINK_INVALID", "f b",
                  "+22", "f empty", "l inside", "! outside FILE_LEFT_OUT_CODE_LINK_INVALID",
                  "! pipe FILE_LEFT_OUT_CODE_SPECIAL_FILE"));
  EXPECT_THAT(Sent("out/b"), ElementsAre("f ", "+22"));
  EXPECT_THAT(Sent("out/inside"), ElementsAre("f ", "+22"));
}

TEST_F(FileSenderTest, AFileGoesInPieces) {
  Write("large", std::string(600 << 10, 'x'));
  const auto sent = Sent("large");
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[1].size(), (256u << 10) + 1);
  EXPECT_EQ(sent[3].size(), (88u << 10) + 1);
}

TEST_F(FileSenderTest, WhenNobodyWantsMoreReadingEnds) {
  Write("a", "1");
  Write("b", "2");
  TakingLink link(2);
  const auto sent = SendFiles(OpenLocal().get(), "", &link);
  ASSERT_TRUE(sent.ok());
  EXPECT_FALSE(*sent);
  EXPECT_EQ(link.taken_.size(), 2u);
}

TEST_F(FileSenderTest, NoPathLeadsOutOfTheWorkingDirectory) {
  std::ofstream(root_ / "secret") << "hush";
  fs::create_symlink(root_ / "secret", work_ / "absolute");
  fs::create_symlink("../../secret", work_ / "relative");
  fs::create_directory_symlink("../..", work_ / "above");
  fs::create_directory_symlink("/proc/self/root", work_ / "magic");
  const auto files = OpenLocal();
  for (const char* path : {"absolute", "relative", "above/secret", "magic/etc", "../../secret"}) {
    EXPECT_EQ(ReasonOf(files->LookAt(path, true).status()), "PATH_LEADS_OUT") << path;
    EXPECT_EQ(ReasonOf(files->Read(path, 0, 10).status()), "PATH_LEADS_OUT") << path;
    EXPECT_EQ(ReasonOf(files->List(path).status()), "PATH_LEADS_OUT") << path;
  }
  EXPECT_EQ(ReasonOf(files->LookAt("nothing", true).status()), "PATH_NOT_FOUND");
}

TEST_F(FileSenderTest, ADirectoryThatTheRunExchangesForALinkGivesNothingAway) {
  std::ofstream(root_ / "secret") << "hush";
  Write("d/secret", "mine");
  fs::create_directory_symlink(root_, work_ / "l");
  const auto files = OpenLocal();
  std::atomic<bool> stop = false;
  std::thread exchanging([&] {
    while (!stop) {
      renameat2(AT_FDCWD, (work_ / "d").c_str(), AT_FDCWD, (work_ / "l").c_str(), RENAME_EXCHANGE);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const auto read = files->Read(i % 2 == 0 ? "d/secret" : "l/secret", 0, 10);
    EXPECT_EQ(read.ok() ? *read : "mine", "mine");
  }
  stop = true;
  exchanging.join();
}

TEST_F(FileSenderTest, AWorkingDirectoryThatIsALinkIsNone) {
  fs::remove_all(work_);
  fs::create_directory_symlink("/etc", work_);
  EXPECT_FALSE(OpenLocalRunFiles(root_, "run/work").ok());
  EXPECT_EQ(ReasonOf(OpenLocalRunFiles(root_, "gone/work").status()), "PATH_NOT_FOUND");
  EXPECT_FALSE(OpenLocalRunFiles(root_, "../" + root_.filename().string() + "/run").ok());
}

TEST_F(FileSenderTest, APipeInPlaceOfAFileIsNotWaitedFor) {
  mkfifo((work_ / "pipe").c_str(), 0600);
  EXPECT_EQ(ReasonOf(OpenLocal()->Read("pipe", 0, 10).status()), "PATH_NOT_FOUND");
}

class FindFilesTest : public RunFilesTest {
 protected:
  FindFilesTest() : results_(root_ / "elsewhere/42") {
    fs::create_directories(results_);
    std::ofstream(results_ / "model") << "weights";
  }
  std::vector<std::string> Sent(const std::string& path) {
    const auto found = FindFiles(
        open_, [](const RankOfRun& of) { return OpenLocalResults(of.results_directory); },
        {.run_key = "k7m2-42-1", .results_directory = results_directory_}, path);
    if (!found.ok()) return {ReasonOf(found.status())};
    return RunFilesTest::Sent(found->files.get(), found->path);
  }

  const fs::path results_;
  std::string results_directory_ = results_.string();
  OpenRunFiles open_ = [this](const RankOfRun&) { return OpenLocalRunFiles(root_, "run/work"); };
};

TEST_F(FindFilesTest, ResultsElsewhereStandForTheNameInTheWorkingDirectory) {
  Write("log", "1");
  EXPECT_THAT(Sent("results"), ElementsAre("d ", "f model", "+weights"));
  EXPECT_THAT(Sent("results/model"), ElementsAre("f ", "+weights"));
  EXPECT_THAT(Sent("log"), ElementsAre("f ", "+1"));
  Write("results/own", "2");
  EXPECT_THAT(Sent("results"), ElementsAre("d ", "f own", "+2")) << "the run made it itself";
}

TEST_F(FindFilesTest, ARunWithoutAWorkingDirectoryMayHaveResults) {
  fs::remove_all(work_);
  EXPECT_THAT(Sent("results/model"), ElementsAre("f ", "+weights"));
  EXPECT_THAT(Sent("log"), ElementsAre("PATH_NOT_FOUND"));
  results_directory_ = "";
  EXPECT_THAT(Sent("results"), ElementsAre("PATH_NOT_FOUND"));
  open_ = nullptr;
  EXPECT_THAT(Sent("results"), ElementsAre("RUN_HAS_NO_FILES"));
  results_directory_ = results_.string() + "/";
  EXPECT_THAT(Sent("results"), ElementsAre("d ", "f model", "+weights"));
}

TEST_F(FindFilesTest, AHostThatIsAwayIsNotTakenForOneWithoutResults) {
  open_ = [](const RankOfRun&) { return absl::UnavailableError("no route"); };
  EXPECT_THAT(Sent("results"), ElementsAre("no route"));
}

TEST_F(FindFilesTest, NoPathLeadsOutOfTheResults) {
  std::ofstream(root_ / "secret") << "hush";
  fs::create_symlink("../../secret", results_ / "link");
  const auto files = OpenLocalResults(results_directory_);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(ReasonOf((*files)->Read("link", 0, 10).status()), "PATH_LEADS_OUT");
  fs::remove_all(results_);
  fs::create_directory_symlink("/etc", results_);
  EXPECT_FALSE(OpenLocalResults(results_directory_).ok()) << "the run has made it a link";
}

TEST(SplitOfTest, APathHasAParentAndAName) {
  const auto split = [](const std::string& path) {
    const SplitPath parts = SplitOf(path);
    return parts.parent + " " + parts.name;
  };
  EXPECT_EQ(split("/lustre/results/42"), "/lustre/results 42");
  EXPECT_EQ(split("/lustre/results/42//"), "/lustre/results 42");
  EXPECT_EQ(split("/results"), "/ results");
  EXPECT_EQ(split("/"), "/ ");
}

}  // namespace
}  // namespace muster::agents
