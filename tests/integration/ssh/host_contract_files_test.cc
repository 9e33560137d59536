// The file calls of Host, on every way to a host.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agents/hosts/local_host.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/ssh/host_contract.h"

namespace muster::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(HostContractTest, WhatIsWrittenIsReadBackWithItsMode) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", content, {.mode = 0666}).ok());
  EXPECT_EQ(*host_->ReadFile(dir_ / "f", 4), content);
  const auto info = host_->Stat(dir_ / "f");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->mode, 0666u);
  EXPECT_EQ(info->size, 4u);
  EXPECT_EQ(info->type, FileType::kRegular);
  struct stat own;
  ASSERT_EQ(stat((dir_ / "f").c_str(), &own), 0);
  EXPECT_EQ(info->modify_time, absl::TimeFromTimespec(own.st_mtim));
}

TEST_P(HostContractTest, AWriteReplacesTheFileAndLeavesNothingElse) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "old", {}).ok());
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "", {.sync = false}).ok());
  EXPECT_EQ(*host_->ReadFile(dir_ / "f", 100), "");
  EXPECT_THAT(*host_->ListDirectory(dir_.path()), ElementsAre("f"));
}

TEST_P(HostContractTest, SeveralFilesAreWrittenEachWithItsContentAndModeUntilOneFails) {
  std::vector<NewFile> files;
  for (int i = 0; i < 20; ++i) {
    files.push_back({dir_ / fmt::format("it's {}", i),
                     std::string(i * 5000, static_cast<char>(i)),
                     {.mode = i % 2 == 0 ? 0600u : 0755u, .sync = i == 7}});
  }
  ASSERT_TRUE(host_->WriteMany(files).ok());
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(*LocalHost().ReadFile(files[i].path, 1 << 20) == files[i].content);
    EXPECT_EQ(LocalHost().Stat(files[i].path)->mode, i % 2 == 0 ? 0600u : 0755u);
  }
  const absl::Status status =
      host_->WriteMany({{dir_ / "one", "1"}, {dir_ / "no/two", "2"}, {dir_ / "three", "3"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "no/two"));
  EXPECT_EQ(*LocalHost().ReadFile(dir_ / "one", 10), "1");
  EXPECT_FALSE(LocalHost().Stat(dir_ / "three").ok());
}

TEST_P(HostContractTest, NewFilesAreWrittenInPlaceWithAnyContent) {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i);
  const std::string script(10'000, '\'');
  const std::vector<std::string> contents = {
      "",     std::string(1, '\0'),   "-n %s\\n \\0", bytes, bytes + "x", script,
      script, "$(touch canary)`id`\n"};
  std::vector<NewFile> files;
  for (size_t i = 0; i < contents.size(); ++i) {
    const uint32_t mode = i % 2 == 0 ? 0600 : 0700;
    files.push_back({dir_ / fmt::format("it's %s {}", i),
                     contents[i],
                     {.mode = mode, .sync = false, .in_place = true}});
  }
  ASSERT_TRUE(host_->WriteMany(files).ok());
  for (const NewFile& file : files) {
    EXPECT_TRUE(*LocalHost().ReadFile(file.path, 1 << 20) == file.content) << file.path;
    EXPECT_EQ(LocalHost().Stat(file.path)->mode, file.options.mode);
  }
  EXPECT_EQ(LocalHost().ListDirectory(dir_.path())->size(), files.size());
  files[5].path = dir_ / "no/such";
  const absl::Status status = host_->WriteMany(files);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "no/such"));
}

TEST_P(HostContractTest, ManyTreesGoAtOnceAndOfDirectoriesOnlyTheEmptyOnes) {
  std::vector<std::string> directories;
  for (int i = 0; i < 300; ++i) directories.push_back(dir_ / fmt::format("it's {}", i));
  directories.push_back(dir_ / "no such");
  for (int i = 0; i < 300; ++i) {
    std::filesystem::create_directory(directories[i]);
    if (i % 3 == 0) {
      ASSERT_TRUE(LocalHost().WriteFile(directories[i] + "/f", "", {.sync = false}).ok());
    }
  }
  ASSERT_TRUE(host_->RemoveEmptyDirectories(directories).ok());
  EXPECT_EQ(LocalHost().ListDirectory(dir_.path())->size(), 100u);
  ASSERT_TRUE(host_->RemoveManyTrees(directories).ok());
  EXPECT_EQ(LocalHost().ListDirectory(dir_.path())->size(), 0u);
  EXPECT_EQ(host_->RemoveManyTrees({dir_ / "f", "/"}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(HostContractTest, AWriteReplacesALinkRatherThanItsTarget) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "target", "old", {}).ok());
  ASSERT_EQ(symlink((dir_ / "target").c_str(), (dir_ / "link").c_str()), 0);
  ASSERT_TRUE(host_->WriteFile(dir_ / "link", "new", {}).ok());
  EXPECT_EQ(*host_->ReadFile(dir_ / "target", 100), "old");
  EXPECT_EQ(host_->Stat(dir_ / "link")->type, FileType::kRegular);
}

TEST_P(HostContractTest, MegabytesAreWrittenAndRead) {
  std::string data;
  for (int i = 0; i < (8 << 20); ++i) data += static_cast<char>(i * 13 + i / 256);
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", data, {}).ok());
  const auto read = host_->ReadFile(dir_ / "f", data.size());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == data);
}

TEST_P(HostContractTest, AFailedWriteNamesThePathAndLeavesNothing) {
  const absl::Status status = host_->WriteFile(dir_ / "no/f", "x", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "no/f"));
  ASSERT_TRUE(host_->MakeDirectories(dir_ / "d", 0755).ok());
  const absl::Status directory = host_->WriteFile(dir_ / "d", "x", {});
  EXPECT_EQ(directory.code(), absl::StatusCode::kFailedPrecondition) << directory;
  EXPECT_THAT(*host_->ListDirectory(dir_.path()), ElementsAre("d"));
}

TEST_P(HostContractTest, AFullDiskIsResourceExhausted) {
  const absl::Status status = host_->WriteFile("/dev/full/f", "x", {});
  EXPECT_FALSE(status.ok());  // no directory; that much can be said of any machine
  if (geteuid() != 0) GTEST_SKIP() << "a small file system can only be made by root";
  const std::string mount = "mount -t tmpfs -o size=64k tmpfs ";
  LocalHost local;
  const auto mounted = local.Run({.argv = {"/bin/sh", "-c", mount + dir_.path()}});
  if (!mounted.ok() || !mounted->ok()) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(host_->WriteFile(dir_ / "f", std::string(1 << 20, 'x'), {}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(host_->ListDirectory(dir_.path())->empty());
  Shell("umount " + dir_.path());
}

TEST_P(HostContractTest, RangesEndWhereTheFileEnds) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "0123456789", {}).ok());
  EXPECT_EQ(*host_->ReadFileRange(dir_ / "f", 3, 4), "3456");
  EXPECT_EQ(*host_->ReadFileRange(dir_ / "f", 8, 100), "89");
  EXPECT_EQ(*host_->ReadFileRange(dir_ / "f", 10, 100), "");
  EXPECT_EQ(*host_->ReadFileRange(dir_ / "f", 1000, 100), "");
  EXPECT_EQ(*host_->ReadFileRange(dir_ / "f", 0, 0), "");
  EXPECT_TRUE(
      absl::IsInvalidArgument(host_->ReadFileRange(dir_ / "f", 0, kMaxReadBytes + 1).status()));
}

TEST_P(HostContractTest, FilesWithoutASizeAreReadToTheirEnd) {
  const auto status = host_->ReadFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(*status, HasSubstr("nonvoluntary_ctxt_switches"));
}

TEST_P(HostContractTest, AFileLongerThanAskedForIsAnErrorNotAPart) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "12345", {}).ok());
  EXPECT_EQ(host_->ReadFile(dir_ / "f", 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(host_->ReadFile(dir_ / "f", 5).ok());
}

TEST_P(HostContractTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {dir_ / "pipe", dir_.path()}) {
    const absl::Status status = host_->ReadFile(path, 10).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Message(status), HasSubstr("is not a regular file"));
  }
  EXPECT_EQ(host_->ReadFile(dir_ / "gone", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(host_->Stat(dir_ / "gone").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(HostContractTest, DirectoriesAreMadeWithTheirParentsAndMode) {
  ASSERT_TRUE(host_->MakeDirectories(dir_ / "a/b/c", 0700).ok());
  ASSERT_TRUE(host_->MakeDirectories(dir_ / "a/b/c", 0755).ok());
  EXPECT_EQ(host_->Stat(dir_ / "a/b/c")->mode, 0700u);
  EXPECT_EQ(host_->Stat(dir_ / "a/b/c")->type, FileType::kDirectory);
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "", {}).ok());
  for (const std::string& path : {dir_ / "f", dir_ / "f/x"}) {
    const absl::Status status = host_->MakeDirectories(path, 0700);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Message(status), HasSubstr("Not a directory"));
  }
}

TEST_P(HostContractTest, NamesAreListedAsTheyAreAndSorted) {
  const std::vector<std::string> names = {" a ", "b\nc", "d'e\"", "\xff", "é"};
  for (const std::string& name : names) {
    ASSERT_TRUE(host_->WriteFile(dir_ / name, name, {.sync = false}).ok());
    EXPECT_EQ(*host_->ReadFile(dir_ / name, 100), name);
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(*host_->ListDirectory(dir_.path()), sorted);
  EXPECT_EQ(host_->ListDirectory(dir_ / "gone").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(host_->ListDirectory(dir_ / " a ").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(HostContractTest, ATreeIsRemovedAndItsLinksAreNotFollowed) {
  ASSERT_TRUE(host_->MakeDirectories(dir_ / "t/sub", 0700).ok());
  ASSERT_TRUE(host_->WriteFile(dir_ / "kept", "x", {}).ok());
  std::filesystem::create_symlink(dir_.path(), dir_ / "t/sub/link");
  ASSERT_TRUE(host_->RemoveTree(dir_ / "t").ok());
  ASSERT_TRUE(host_->RemoveTree(dir_ / "t").ok());
  EXPECT_THAT(*host_->ListDirectory(dir_.path()), ElementsAre("kept"));
  ASSERT_TRUE(host_->RemoveTree(dir_ / "kept").ok());
}

TEST_P(HostContractTest, PathsThatAreNotAbsoluteAreRefused) {
  using std::string_literals::operator""s;
  for (const std::string& path : {""s, "f"s, "../f"s, "/tmp/a\0b"s}) {
    EXPECT_TRUE(absl::IsInvalidArgument(host_->WriteFile(path, "", {}))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->ReadFile(path, 1).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->ReadFileRange(path, 0, 1).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->Stat(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->MakeDirectories(path, 0700))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->ListDirectory(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->RemoveTree(path))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->StatMany({path})[0].status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(host_->ReadMany({{path, 0, 1}})[0].status())) << path;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(host_->RemoveTree("//")));
}

TEST_P(HostContractTest, ManyFilesAreLookedAtAtOnce) {
  std::vector<std::string> paths;
  for (int i = 0; i < 600; ++i) {
    paths.push_back(dir_ / fmt::format("it's {}", i));
    if (i % 3 != 0) {
      std::filesystem::create_directory(dir_ / "x");
      ASSERT_TRUE(LocalHost().WriteFile(paths.back(), std::string(i, 'a'), {.sync = false}).ok());
    }
  }
  paths.push_back("relative");
  paths.push_back(paths[1] + "/not-a-directory");
  const auto infos = host_->StatMany(paths);
  ASSERT_EQ(infos.size(), paths.size());
  for (int i = 0; i < 600; ++i) {
    if (i % 3 == 0) {
      EXPECT_EQ(infos[i].status().code(), absl::StatusCode::kNotFound) << infos[i].status();
    } else {
      ASSERT_TRUE(infos[i].ok()) << infos[i].status();
      EXPECT_EQ(infos[i]->size, static_cast<uint64_t>(i));
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(infos[600].status()));
  EXPECT_EQ(infos[601].status().code(), absl::StatusCode::kFailedPrecondition)
      << infos[601].status();
}

TEST_P(HostContractTest, PartsOfManyFilesAreReadAtOnce) {
  std::vector<FilePart> parts;
  for (int i = 0; i < 300; ++i) {
    const std::string path = dir_ / std::to_string(i);
    ASSERT_TRUE(LocalHost().WriteFile(path, fmt::format("\n{}\nabc\0\n", i), {.sync = false}).ok());
    parts.push_back({path, 1, 1000});
  }
  ASSERT_EQ(symlink(parts[0].path.c_str(), (dir_ / "link").c_str()), 0);
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  parts.push_back({dir_ / "link", 0, 10});
  parts.push_back({dir_ / "pipe", 0, 10});
  parts.push_back({dir_ / "gone", 0, 10});
  parts.push_back({dir_ / "0", 1000, 10});
  const auto contents = host_->ReadMany(parts);
  ASSERT_EQ(contents.size(), parts.size());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(contents[i].ok()) << contents[i].status();
    EXPECT_EQ(*contents[i], fmt::format("{}\nabc\0\n", i));
  }
  EXPECT_EQ(contents[300].status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(contents[301].status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(contents[302].status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*contents[303], "");
  EXPECT_TRUE(absl::IsInvalidArgument(
      host_->ReadMany({{dir_ / "0", 0, kMaxReadBytes}, {dir_ / "0", 0, 1}})[0].status()));
}

}  // namespace
}  // namespace muster::hosts
