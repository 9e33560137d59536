// This machine as one of its users sees it, with a script in the place of muster-run-as that writes
// down whom it was asked for, and runs the program as this user.
#include "agents/machines/user_host.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/machines/user_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using testing::HasSubstr;

class UserHostTest : public testing::Test {
 protected:
  UserHostTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/runs/a-1-1");
    std::filesystem::create_directories(root_ + "/results/deep");
    Install("echo \"$2 $3\" >>" + root_ + "/asked; shift 2; cd \"$1\"; shift; exec \"$@\"");
  }
  ~UserHostTest() override { std::filesystem::remove_all(root_); }

  void Install(const std::string& script) {
    std::ofstream(root_ + "/helper") << "#!/bin/sh\n" << script << "\n";
    chmod((root_ + "/helper").c_str(), 0700);
  }
  RunUser User(const std::string& name) const {
    return {.name = name, .directory = root_ + "/work", .helper = root_ + "/helper"};
  }
  std::string Asked() const {
    std::ifstream file(root_ + "/asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string root_ = testing::TempDir() + "muster-user-host-test";
};

TEST_F(UserHostTest, CommandsRunAsTheUserWithTheVariablesThatAreGiven) {
  UserHost host(User("ada"));
  const auto result = host.Run({.argv = {"/bin/sh", "-c", "echo $WORD; pwd"},
                                .env = {{"WORD", "a b"}},
                                .working_directory = "/tmp"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, "a b\n/tmp\n");
  EXPECT_EQ(Asked(), "ada /tmp\n");
}

TEST_F(UserHostTest, FilesAreHandledAsTheUser) {
  UserHost host(User("ada"));
  ASSERT_TRUE(host.MakeDirectories(root_ + "/work/deep", 0700).ok());
  ASSERT_TRUE(host.WriteFile(root_ + "/work/deep/file", "words", {.mode = 0600}).ok());
  EXPECT_EQ(host.ReadFile(root_ + "/work/deep/file", 100).value(), "words");
  ASSERT_TRUE(host.RemoveTree(root_ + "/work").ok());
  EXPECT_FALSE(std::filesystem::exists(root_ + "/work"));
  EXPECT_THAT(Asked(), HasSubstr("ada /\n"));
}

TEST_F(UserHostTest, ARefusalOfMusterRunAsIsNoAnswerOfTheProgram) {
  Install("echo 'muster-run-as: user \"ada\" is under deny-user' >&2; exit 125");
  UserHost host(User("ada"));
  const auto result = host.Run({.argv = {"true"}});
  EXPECT_TRUE(absl::IsPermissionDenied(result.status()));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("deny-user"));
  EXPECT_TRUE(absl::IsPermissionDenied(host.ReadFile("/etc/passwd", 1 << 20).status()));
}

TEST_F(UserHostTest, WhatAShellSaysBesidesTheScriptIsNoPartOfAFile) {
  // A user's processes may write to what they can reach of the script, but not in its name.
  Install("shift 3; echo noise; exec \"$@\"");
  std::ofstream(root_ + "/file") << "words";
  EXPECT_EQ(UserHost(User("ada")).ReadFile(root_ + "/file", 100).value(), "words");
}

class UserOutputTest : public UserHostTest {
 protected:
  UserOutput output_{root_ + "/runs"};
};

TEST_F(UserOutputTest, ResultsHaveAPathOfTheirOwnAndAreReadAsTheirUser) {
  std::ofstream(root_ + "/results/model") << "model";
  const std::string ada = output_.SetResults("a-1-1", root_ + "/results", User("ada"));
  const std::string bob = output_.SetResults("a-2-1", root_ + "/results", User("bob"));
  EXPECT_NE(ada, bob);
  EXPECT_EQ(output_.ReadFileRange(bob + "/model", 1, 3).value(), "ode");
  EXPECT_EQ(Asked(), "bob /\n");
  const auto listed = output_.Run({.argv = {"find", ada, "-type", "f"}});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->stdout_data, ada + "/model\n");
}

TEST_F(UserOutputTest, TheAgentsOwnFilesAreReadAsTheAgent) {
  std::ofstream(root_ + "/runs/a-1-1/stdout") << "log";
  EXPECT_EQ(output_.ReadFileRange(root_ + "/runs/a-1-1/stdout", 0, 10).value(), "log");
  EXPECT_EQ(Asked(), "");
}

TEST_F(UserOutputTest, AUsersListNamesNoFileOfTheAgents) {
  const std::string ada = output_.SetResults("a-1-1", root_ + "/results", User("ada"));
  Install("echo 1 " + root_ + "/runs/a-2-1/stdout");
  const auto listed = output_.Run({.argv = {"find", ada}});
  EXPECT_TRUE(absl::IsPermissionDenied(listed.status())) << listed->stdout_data;
}

TEST_F(UserOutputTest, NothingElseIsReadForAnybody) {
  std::ofstream(root_ + "/results/model") << "model";
  const std::string ada = output_.SetResults("a-1-1", root_ + "/results", User("ada"));
  for (const std::string& path : {root_ + "/results/model", std::string("/etc/passwd"),
                                  root_ + "/runs/../results/model", ada + "x/model"}) {
    EXPECT_FALSE(output_.ReadFileRange(path, 0, 10).ok()) << path;
    EXPECT_FALSE(output_.Run({.argv = {"cat", path}}).ok()) << path;
  }
  output_.Forget("a-1-1");
  EXPECT_FALSE(output_.Run({.argv = {"cat", ada + "/model"}}).ok());
}

}  // namespace
}  // namespace muster::machines
