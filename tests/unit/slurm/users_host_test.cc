#include "agents/slurm/users_host.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;

// Says of each call who was asked, and for what.
class Witness : public hosts::LocalHost {
 public:
  Witness(std::string name, std::vector<std::string>* calls)
      : name_(std::move(name)), calls_(*calls) {}

  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override {
    std::string words;
    for (const std::string& word : command.argv) words += " " + word;
    calls_.push_back(name_ + words);
    hosts::CommandResult result;
    result.stdout_data = command.argv.back() + "/x";
    return result;
  }
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t, size_t) override {
    calls_.push_back(name_ + " read " + std::string(path));
    return name_;
  }
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override {
    std::vector<absl::StatusOr<std::string>> texts;
    for (const hosts::FilePart& part : parts) texts.emplace_back(name_ + " " + part.path);
    return texts;
  }
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override {
    calls_.push_back(name_ + " removes " + paths.front());
    return name_ == "ada" ? absl::PermissionDeniedError("ada") : absl::OkStatus();
  }

 private:
  const std::string name_;
  std::vector<std::string>& calls_;
};

class UsersHostTest : public ::testing::Test {
 protected:
  std::vector<std::string> calls_;
  std::map<std::string, std::unique_ptr<Witness>> users_;
  UsersHost host_{std::make_unique<Witness>("agent", &calls_), "/work",
                  [this](const std::string& user) {
                    auto& made = users_[user];
                    if (made == nullptr) made = std::make_unique<Witness>(user, &calls_);
                    return made.get();
                  }};
};

TEST_F(UsersHostTest, EachFileIsItsUsers) {
  const std::vector<absl::StatusOr<std::string>> texts = host_.ReadMany(
      {{"/work/bob/1"}, {"/state/x"}, {"/work/ada/2"}, {"/work/bob/3"}, {"/work"}, {"/@ada/a/b"}});
  std::vector<std::string> seen;
  for (const auto& text : texts) seen.push_back(text.value_or("error"));
  EXPECT_THAT(seen, ElementsAre("bob /work/bob/1", "agent /state/x", "ada /work/ada/2",
                                "bob /work/bob/3", "agent /work", "ada /a/b"));
}

TEST_F(UsersHostTest, ACommandIsOfTheUserWhoseFileItNamesFirst) {
  EXPECT_TRUE(host_.Run({.argv = {"mv", "/work/ada/1", "/work/bob/1"}}).ok());
  EXPECT_TRUE(host_.Run({.argv = {"id", "-u", "x"}}).ok());
  EXPECT_THAT(calls_, ElementsAre("ada mv /work/ada/1 /work/bob/1", "agent id -u x"));
}

TEST_F(UsersHostTest, WhatACommandFindsIsStillReadAsItsUser) {
  const auto found = host_.Run({.argv = {"find", UserPath("ada", "/data")}});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->stdout_data, UserPath("ada", "/data/x"));
  EXPECT_TRUE(host_.ReadFileRange(found->stdout_data, 0, 1).ok());
  // The user's own words make nobody else of the user.
  EXPECT_TRUE(host_.ReadFileRange(UserPath("ada", UserPath("bob", "/data")), 0, 1).ok());
  EXPECT_THAT(calls_, ElementsAre("ada find /data", "ada read /data/x", "ada read /@bob/data"));
}

TEST_F(UsersHostTest, OneUserWhoCannotBeActedForHoldsUpNobody) {
  EXPECT_TRUE(absl::IsPermissionDenied(host_.RemoveManyTrees({"/work/ada/1", "/work/bob/1"})));
  EXPECT_THAT(calls_, ElementsAre("ada removes /work/ada/1", "bob removes /work/bob/1"));
}

}  // namespace
}  // namespace muster::slurm
