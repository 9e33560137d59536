#include "clients/cpp/uploads/local_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "contract/file_tree.h"
#include "digest/sha256.h"
#include "tests/unit/clients/uploads/uploads_fixture.h"

namespace muster::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(UploadsTest, ADirectoryBecomesATreeThatItsReceiversAccept) {
  Write("train.py", "print(1)");
  Write("a/b/same.py", "print(1)");
  Write("a-b", "");
  std::filesystem::create_directories(directory_ / "empty/inner");
  std::filesystem::create_symlink("b/same.py", directory_ / "a/link");
  chmod((directory_ / "train.py").c_str(), 0755);
  const auto local = ReadLocalTree(directory_, kPlenty, RulesAbove::kCount);
  ASSERT_TRUE(local.ok()) << local.status();
  const auto tree = contract::ParseFileTree(local->bytes);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(tree->entries_size(), 5);
  EXPECT_EQ(tree->entries(0).path(), "a-b");
  EXPECT_EQ(tree->entries(0).sha256(), Sha256Of(""));
  EXPECT_EQ(tree->entries(1).path(), "a/b/same.py");
  EXPECT_FALSE(tree->entries(1).executable());
  EXPECT_EQ(tree->entries(2).link_target(), "b/same.py");
  EXPECT_EQ(tree->entries(3).path(), "empty/inner");
  EXPECT_EQ(tree->entries(3).kind(), v1::FILE_KIND_DIRECTORY);
  EXPECT_TRUE(tree->entries(4).executable());
  EXPECT_EQ(tree->entries(4).sha256(), Sha256Of("print(1)"));
  EXPECT_EQ(tree->total_bytes(), 16u);
  EXPECT_EQ(local->sha256, Sha256Of(local->bytes));
  EXPECT_EQ(local->sources.size(), 2u) << "the same content is sent once";
}

TEST_F(UploadsTest, TheSameDirectoryIsTheSameTreeWhereverItLies) {
  Write("one/x/train.py", "1");
  Write("one/.gitignore", "*.pyc\n");
  Write("one/x/a.pyc");
  Write("two/.gitignore", "*.pyc\n");
  Write("two/x/train.py", "1");
  const auto one = ReadLocalTree(directory_ / "one", kPlenty, RulesAbove::kCount);
  const auto two = ReadLocalTree(directory_ / "two", kPlenty, RulesAbove::kCount);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->sha256, two->sha256);
}

TEST_F(UploadsTest, AFileThatOthersMayNotReadStaysSo) {
  Write("id_ed25519");
  Write("id_ed25519.pub");
  chmod((directory_ / "id_ed25519").c_str(), 0600);
  chmod((directory_ / "id_ed25519.pub").c_str(), 0640);
  const auto directory = ReadLocalTree(directory_, kPlenty, RulesAbove::kCount);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_TRUE(directory->tree.entries(0).owner_only());
  EXPECT_FALSE(directory->tree.entries(1).owner_only());
  const auto file = ReadLocalTree(directory_ / "id_ed25519", kPlenty, RulesAbove::kCount);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tree.entries(0).owner_only());
}

TEST_F(UploadsTest, AFileBecomesATreeOfOne) {
  Write("data.csv", "1,2");
  EXPECT_THAT(Paths("data.csv"), ElementsAre("data.csv"));
}

TEST_F(UploadsTest, MusterignoreComesAfterGitignoreAndMayTakeBack) {
  Write(".gitignore", "*.bin\n");
  Write(".musterignore", "!model.bin\nnotes/\n");
  Write("model.bin");
  Write("other.bin");
  Write("notes/a.txt");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", ".musterignore", "model.bin"));
}

TEST_F(UploadsTest, TheRulesOfTheRepositoryAboveCountForADirectoryOfIt) {
  Write("repo/.git/info/exclude", "secret\n");
  Write("repo/.gitignore", "/src/out\n*.o\n");
  Write("repo/src/.gitignore", "!keep.o\n");
  Write("repo/src/out/x");
  Write("repo/src/app/out/y");
  Write("repo/src/app/a.o");
  Write("repo/src/keep.o");
  Write("repo/src/app/secret");
  Write(".gitignore", "*\n");
  EXPECT_THAT(Paths("repo/src"), ElementsAre(".gitignore", "app/out/y", "keep.o"));
}

TEST_F(UploadsTest, RulesAboveADirectoryThatIsNamedOutrightLeaveItWhole) {
  Write("repo/.git/info/exclude", "excluded\n");
  Write("repo/.gitignore", "data/*\n*.ckpt\n");
  Write("repo/data/.gitignore", "*.tmp\n");
  Write("repo/data/a.ckpt");
  Write("repo/data/a.tmp");
  Write("repo/data/excluded");
  Write("repo/excluded");
  EXPECT_THAT(Paths("repo/data", RulesAbove::kDoNotCount),
              ElementsAre(".gitignore", "a.ckpt", "excluded"));
  EXPECT_THAT(Paths("repo", RulesAbove::kDoNotCount), ElementsAre(".gitignore", "data"))
      << "its own rules";
}

TEST_F(UploadsTest, SkyignoreTakesThePlaceOfAllOfGitsRules) {
  Write("repo/.git/info/exclude", "excluded\n");
  Write("repo/.gitignore", "*.o\n");
  Write("repo/src/.gitignore", "*.bin\n");
  Write("repo/src/.skyignore", "# SkyPilot's\n.env\n/data/\n");
  Write("repo/src/.musterignore", "notes\n");
  Write("repo/src/app/.gitignore", "*\n");
  Write("repo/src/app/.skyignore", "*.log\n");
  for (const char* file : {".env", "a.o", "app/.env", "app/a.log", "app/a.py", "app/data/x",
                           "data/x", "excluded", "model.bin", "notes"})
    Write(std::string("repo/src/") + file);
  EXPECT_THAT(Paths("repo/src"),
              ElementsAre(".gitignore", ".musterignore", ".skyignore", "a.o", "app/.gitignore",
                          "app/.skyignore", "app/a.py", "app/data/x", "excluded", "model.bin"));
}

TEST_F(UploadsTest, ASkyignoreBelowTheDirectoryAloneCountsForNothing) {
  Write(".gitignore", "*.o\n");
  Write("app/.skyignore", "*.log\n");
  Write("app/a.o");
  Write("app/a.log");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", "app/.skyignore", "app/a.log"));
}

TEST_F(UploadsTest, GitsOwnFilesStayBehind) {
  Write(".git/config");
  Write("module/.git", "gitdir: elsewhere\n");
  Write("module/a");
  EXPECT_THAT(Paths(), ElementsAre("module/a"));
}

TEST_F(UploadsTest, TooManyBytesAreToldWithTheLargestFilesBeforeAnyIsRead) {
  for (const auto& [path, size] : {std::pair("data/big.bin", 5000), std::pair("b", 3000),
                                   std::pair("c", 2000), std::pair("d", 10)}) {
    Write(path);
    std::filesystem::resize_file(directory_ / path, static_cast<uintmax_t>(size));
  }
  EXPECT_THAT(Error(10'009), AllOf(HasSubstr("10010 bytes"), HasSubstr("\"data/big.bin\" ("),
                                   HasSubstr("\"c\" ("), HasSubstr(".musterignore")));
  EXPECT_THAT(Error(10'009), testing::Not(HasSubstr("\"d\"")));
  EXPECT_EQ(Error(10'010), "");
}

TEST_F(UploadsTest, WhatNoTreeMayHoldIsNamedWithARemedy) {
  std::filesystem::create_symlink("/etc/passwd", directory_ / "out");
  EXPECT_THAT(Error(), HasSubstr("; use a relative one, or leave it out by a .musterignore file"));
  std::filesystem::remove(directory_ / "out");
  std::filesystem::create_symlink("../elsewhere", directory_ / "out");
  EXPECT_THAT(Error(), HasSubstr("leads out of the tree; leave it out by a .musterignore file"));
  std::filesystem::remove(directory_ / "out");
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Error(), AllOf(HasSubstr("\"pipe\""), HasSubstr(".musterignore")));
  Write(".musterignore", "pipe\n");
  EXPECT_EQ(Error(), "");
}

TEST_F(UploadsTest, ALinkThatLeadsOutIsToldBeforeAnyFileIsCounted) {
  Write("large", "0123456789");
  std::filesystem::create_directories(directory_ / ".venv/bin");
  std::filesystem::create_symlink("/usr/bin/python3", directory_ / ".venv/bin/python");
  EXPECT_THAT(Error(/*max_bytes=*/1), AllOf(HasSubstr("\".venv/bin/python\""),
                                            HasSubstr("absolute"), HasSubstr(".musterignore")));
  Write(".musterignore", ".venv/\n");
  EXPECT_THAT(Error(/*max_bytes=*/1), HasSubstr("largest"));
}

TEST_F(UploadsTest, AFileThatGrowsWhileItIsReadIsRefused) {
  // The kernel says that such a file has no bytes, and has some.
  const absl::Status status =
      ReadLocalTree("/proc/self/status", kPlenty, RulesAbove::kCount).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("/proc/self/status"), HasSubstr("has changed")));
}

TEST_F(UploadsTest, WhatIsNotThereIsNamed) {
  const auto local = ReadLocalTree(directory_ / "nowhere", kPlenty, RulesAbove::kCount);
  EXPECT_TRUE(absl::IsNotFound(local.status()));
  EXPECT_THAT(std::string(local.status().message()), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace muster::client
