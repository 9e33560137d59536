// The file calls of LocalHost.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

class FilesTest : public ::testing::Test {
 protected:
  LocalHost host_;
  TempDir dir_;
};

TEST_F(FilesTest, WhatIsWrittenIsReadBackWithItsMode) {
  const std::string content("a\0b\n", 4);
  umask(022);
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", content, {.mode = 0666}).ok());
  EXPECT_EQ(*host_.ReadFile(dir_ / "f", 4), content);
  const auto info = host_.Stat(dir_ / "f");
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->mode, 0666u);
  EXPECT_EQ(info->size, 4u);
  EXPECT_EQ(info->type, FileType::kRegular);
}

TEST_F(FilesTest, AWriteReplacesTheFileAndLeavesNothingElse) {
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", "old", {}).ok());
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", "new", {.sync = false}).ok());
  EXPECT_EQ(*host_.ReadFile(dir_ / "f", 100), "new");
  EXPECT_THAT(*host_.ListDirectory(dir_.path()), ElementsAre("f"));
}

TEST_F(FilesTest, AReaderNeverSeesAPartOfAWrite) {
  const std::string a(1 << 20, 'a');
  const std::string b(1 << 20, 'b');
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", a, {}).ok());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(host_.WriteFile(dir_ / "f", i % 2 == 0 ? b : a, {.sync = false}).ok());
    }
    done = true;
  });
  while (!done) {
    const auto content = host_.ReadFile(dir_ / "f", 2 << 20);
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(*content == a || *content == b);
  }
  writer.join();
}

TEST_F(FilesTest, AFailedWriteNamesThePathAndLeavesNothing) {
  const absl::Status status = host_.WriteFile(dir_ / "no/f", "x", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "no/f"));
  ASSERT_TRUE(host_.MakeDirectories(dir_ / "d", 0755).ok());
  EXPECT_FALSE(host_.WriteFile(dir_ / "d", "x", {}).ok());
  EXPECT_THAT(*host_.ListDirectory(dir_.path()), ElementsAre("d"));
}

TEST_F(FilesTest, RangesEndWhereTheFileEnds) {
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", "0123456789", {}).ok());
  EXPECT_EQ(*host_.ReadFileRange(dir_ / "f", 3, 4), "3456");
  EXPECT_EQ(*host_.ReadFileRange(dir_ / "f", 8, 100), "89");
  EXPECT_EQ(*host_.ReadFileRange(dir_ / "f", 10, 100), "");
  EXPECT_EQ(*host_.ReadFileRange(dir_ / "f", 1000, 100), "");
  EXPECT_EQ(*host_.ReadFileRange(dir_ / "f", 0, 0), "");
}

TEST_F(FilesTest, FilesWithoutASizeAreReadToTheirEnd) {
  const auto status = host_.ReadFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("nonvoluntary_ctxt_switches"));
}

TEST_F(FilesTest, AFileThatIsTooLongIsAnErrorNotACut) {
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", "12345", {}).ok());
  EXPECT_TRUE(host_.ReadFile(dir_ / "f", 5).ok());
  const absl::Status status = host_.ReadFile(dir_ / "f", 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("4 bytes"));
}

TEST_F(FilesTest, ReadingWhatIsNoFileFails) {
  EXPECT_EQ(host_.ReadFile(dir_ / "none", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(host_.ReadFile(dir_.path(), 10).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(host_.ReadFile(dir_ / "fifo", 10).ok());  // and does not hang
}

TEST_F(FilesTest, DirectoriesAreMadeWithTheirParents) {
  ASSERT_TRUE(host_.MakeDirectories(dir_ / "a/b/c", 0700).ok());
  ASSERT_TRUE(host_.MakeDirectories(dir_ / "a/b/c/", 0755).ok());
  EXPECT_EQ(host_.Stat(dir_ / "a/b/c")->mode, 0700u);
  EXPECT_EQ(host_.Stat(dir_ / "a/b/c")->type, FileType::kDirectory);
  ASSERT_TRUE(host_.WriteFile(dir_ / "f", "", {}).ok());
  std::filesystem::create_symlink("loop", dir_ / "loop");
  EXPECT_THAT(Message(host_.MakeDirectories(dir_ / "loop", 0700)),
              HasSubstr("Too many levels of symbolic links"))
      << "as a mount whose server is away is there, and cannot be looked at";
  const absl::Status status = host_.MakeDirectories(dir_ / "f/x", 0700);
  EXPECT_THAT(Message(status), HasSubstr("Not a directory"));
}

TEST_F(FilesTest, ATreeIsRemovedAndItsLinksAreNotFollowed) {
  ASSERT_TRUE(host_.MakeDirectories(dir_ / "t/sub", 0700).ok());
  ASSERT_TRUE(host_.WriteFile(dir_ / "kept", "x", {}).ok());
  std::filesystem::create_symlink(dir_.path(), dir_ / "t/sub/link");
  ASSERT_TRUE(host_.RemoveTree(dir_ / "t").ok());
  ASSERT_TRUE(host_.RemoveTree(dir_ / "t").ok());
  EXPECT_THAT(*host_.ListDirectory(dir_.path()), ElementsAre("kept"));
  ASSERT_TRUE(host_.RemoveTree(dir_ / "kept").ok());
}

TEST_F(FilesTest, PathsThatAreNotAbsoluteAreRefused) {
  using std::string_literals::operator""s;
  for (const std::string& path : {""s, "f"s, "../f"s, "/tmp/a\0b"s}) {
    EXPECT_TRUE(absl::IsInvalidArgument(host_.WriteFile(path, "", {}))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.ReadFile(path, 1).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.ReadFileRange(path, 0, 1).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.Stat(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.MakeDirectories(path, 0700))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.ListDirectory(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_.RemoveTree(path))) << path;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(host_.RemoveTree("//")));
}

}  // namespace
}  // namespace muster::hosts
