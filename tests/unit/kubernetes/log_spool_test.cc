#include "agents/kubernetes/logs/log_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fmt/format.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

LogPosition After(uint64_t line) {
  return {.time = static_cast<int64_t>(line),
          .latest = static_cast<int64_t>(line),
          .count = 1,
          .bytes = 5};
}

class LogSpoolTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  hosts::TempDir directory_;
  const std::string path_ = directory_ / "rank-0.out";
  LogSpool spool_{path_};
};

TEST_F(LogSpoolTest, AnotherProcessGoesOnWhereThisOneWas) {
  ASSERT_TRUE(spool_.Begin("a/setup").ok());
  ASSERT_TRUE(spool_.Append("setup\n", After(1)).ok());
  ASSERT_TRUE(spool_.Finish().ok());
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  ASSERT_TRUE(spool_.Append("line\n", After(2)).ok());
  LogSpool next(path_);
  next.Load();
  EXPECT_EQ(next.source(), "a/main");
  EXPECT_EQ(next.position(), After(2));
  EXPECT_TRUE(next.HasFinished("a/setup"));
  EXPECT_FALSE(next.HasFinished("a/main"));
  ASSERT_TRUE(next.Append("more\n", After(3)).ok());
  EXPECT_EQ(Content(), "setup\nline\nmore\n");
}

TEST_F(LogSpoolTest, AllContainersThatWereReadAreRememberedHoweverManyThereWere) {
  for (int pod = 0; pod < 100; ++pod) {
    for (const char* container : {"storage", "main"}) {
      ASSERT_TRUE(spool_.Begin(fmt::format("uid-{}/{}", pod, container)).ok());
      ASSERT_TRUE(spool_.Finish().ok());
    }
  }
  LogSpool next(path_);
  next.Load();
  for (const LogSpool* spool : {&spool_, &next}) {
    for (int pod = 0; pod < 100; ++pod) {
      EXPECT_TRUE(spool->HasFinished(fmt::format("uid-{}/storage", pod))) << pod;
      EXPECT_TRUE(spool->HasFinished(fmt::format("uid-{}/main", pod))) << pod;
    }
    EXPECT_FALSE(spool->HasFinished("uid-100/main"));
    EXPECT_FALSE(spool->HasFinished(""));
  }
}

// Kills between the output and the position, at each of the output's bytes.
TEST_F(LogSpoolTest, OutputThatWasWrittenWithoutItsPositionIsNotRepeatedNorTakenBack) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  ASSERT_TRUE(spool_.Append("known\n", After(1)).ok());
  const std::string position = path_ + ".position";
  std::filesystem::copy_file(position, directory_ / "old");
  const std::string more = "second\nthird\n";
  for (size_t written = 0; written <= more.size(); ++written) {
    std::filesystem::copy_file(directory_ / "old", position,
                               std::filesystem::copy_options::overwrite_existing);
    std::ofstream(path_) << "known\n" + more.substr(0, written);
    LogSpool next(path_);
    next.Load();
    EXPECT_EQ(next.position(), After(1));
    ASSERT_TRUE(next.Append("sec", After(2)).ok());
    ASSERT_EQ(Content(), "known\n" + more.substr(0, std::max<size_t>(written, 3)));
    ASSERT_TRUE(next.Append("ond\nthird\n", After(3)).ok());
    ASSERT_TRUE(next.Append("fourth\n", After(4)).ok());
    ASSERT_EQ(Content(), "known\nsecond\nthird\nfourth\n") << written;
  }
}

TEST_F(LogSpoolTest, AGapThatWasWrittenWithoutItsPositionIsToldOnce) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  ASSERT_TRUE(spool_.Append("half", After(1)).ok());
  std::filesystem::copy_file(path_ + ".position", directory_ / "old");
  ASSERT_TRUE(spool_.Append("later\n", After(5), /*has_gap=*/true).ok());
  const std::string text = std::string("half\n") + kRotatedLine + "later\n";
  EXPECT_EQ(Content(), text);
  std::filesystem::copy_file(directory_ / "old", path_ + ".position",
                             std::filesystem::copy_options::overwrite_existing);
  LogSpool next(path_);
  next.Load();
  ASSERT_TRUE(next.Append("later\n", After(5), /*has_gap=*/true).ok());
  EXPECT_EQ(Content(), text);
}

TEST_F(LogSpoolTest, ANodeThatTellsAnotherLogThanBeforeAddsToWhatIsThere) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  std::ofstream(path_) << "first";
  LogSpool next(path_);
  next.Load();
  ASSERT_TRUE(next.Append("fifth\n", After(5)).ok());
  EXPECT_EQ(Content(), std::string("first\n") + kRotatedLine + "fifth\n");
}

TEST_F(LogSpoolTest, OutputThatAMachinesEndHasTakenIsReadAgain) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  ASSERT_TRUE(spool_.Append("first\nsecond\n", After(2)).ok());
  std::filesystem::resize_file(path_, 8);
  LogSpool next(path_);
  next.Load();
  EXPECT_EQ(next.position(), LogPosition());
  ASSERT_TRUE(next.Append("first\nsecond\n", After(2)).ok());
  EXPECT_EQ(Content(), "first\nsecond\n");
}

TEST_F(LogSpoolTest, WhatTheAgentSaysIsALineOfItsOwn) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  ASSERT_TRUE(spool_.Say("muster: one\n").ok());
  ASSERT_TRUE(spool_.Append("half", After(1)).ok());
  ASSERT_TRUE(spool_.Say("muster: two\n").ok());
  EXPECT_EQ(Content(), "muster: one\nhalf\nmuster: two\n");
}

TEST_F(LogSpoolTest, AFullDiskIsAnErrorAndTheSameOutputGoesOnOnceThereIsRoom) {
  ASSERT_TRUE(spool_.Begin("a/main").ok());
  std::filesystem::create_symlink("/dev/full", path_);
  EXPECT_EQ(spool_.Append("line\n", After(1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(spool_.position(), LogPosition());
  std::filesystem::remove(path_);
  ASSERT_TRUE(spool_.Append("line\n", After(1)).ok());
  EXPECT_EQ(Content(), "line\n");
}

TEST_F(LogSpoolTest, ManyContainersDoNotMakeThePositionLongerThanAPage) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(spool_.Begin(fmt::format("{:036}/{:063}", i, i)).ok());
    ASSERT_TRUE(spool_.Finish().ok());
  }
  LogSpool next(path_);
  next.Load();
  EXPECT_TRUE(next.HasFinished(fmt::format("{:036}/{:063}", 99, 99)));
}

}  // namespace
}  // namespace muster::kubernetes
