// Tests the backend's handling of Jobs that no run wants any more.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BackendSweepTest : public ScriptedClusterTest {
 protected:
  std::vector<std::string> Issues() {
    const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    if (!inventory.ok()) return {};
    std::vector<std::string> messages;
    for (const v1::ClusterIssue& issue : inventory->issues()) messages.push_back(issue.message());
    return messages;
  }
};

TEST_F(BackendSweepTest, ACleanUpThatFailsIsDoneWithALaterInventory) {
  jobs_.push_back(EndedJob("k7m2-1-1"));
  Start({"k7m2-1-1"});
  Set([this] { refuses_changes_ = true; });
  EXPECT_FALSE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok()) << "the journal keeps it";
  Issues();
  EXPECT_EQ(TakeChanges().size(), 2) << "tried at once, and once again";
  Set([this] { refuses_changes_ = false; });
  Issues();
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(R"("ttlSecondsAfterFinished":60)")));
}

TEST_F(BackendSweepTest, ACleanUpThatFailedIsDoneByTheNextForgetAlsoOfAnotherAgent) {
  jobs_.push_back(EndedJob("k7m2-1-1"));
  Start({"k7m2-1-1"});
  Set([this] { refuses_changes_ = true; });
  EXPECT_FALSE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok());
  EXPECT_FALSE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok()) << "again, with nothing new";
  Start({"k7m2-1-1"});
  TakeChanges();
  Set([this] { refuses_changes_ = false; });
  EXPECT_TRUE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok());
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(R"("ttlSecondsAfterFinished":60)")));
}

TEST_F(BackendSweepTest, AConnectionThatIsCutSaysNothingOfTheJobAndAnotherUidThatItIsGone) {
  jobs_.push_back(EndedJob("k7m2-1-1"));
  Start({"k7m2-1-1"});
  const auto answer_patches = [this](const ScriptedReply& reply) {
    Set([&] {
      answer_first_ = [reply](const ScriptedRequest& request) {
        return request.method == "PATCH" ? std::optional(reply) : std::nullopt;
      };
    });
    return ForgetOne(*backend_, Handle("k7m2-1-1"));
  };
  EXPECT_FALSE(answer_patches({.hangs_up = true}).ok()) << "the journal keeps it";
  EXPECT_FALSE(answer_patches({.status = 409, .body = R"({"reason": "Conflict"})"}).ok());
  EXPECT_TRUE(
      answer_patches({.status = 422, .body = R"({"message": "metadata.uid: Invalid"})"}).ok());
}

TEST_F(BackendSweepTest, AJobThatMayNotBeSeenIsForgottenWhereTheAgentHasNothingToDoAnyMore) {
  refuses_lists_ = refuses_jobs_ = true;
  agents::RunHandle moved = Handle("k7m2-1-1");
  moved.external_id = "former/k7m2-1-1";
  StartWith({moved, Handle("k7m2-2-1")});
  EXPECT_TRUE(ForgetOne(*backend_, moved).ok());
  EXPECT_FALSE(ForgetOne(*backend_, Handle("k7m2-2-1")).ok()) << "its rights may come back";
}

TEST_F(BackendSweepTest, AJobThatNoWatchHasListedYetIsCleanedUpAfterOrStaysToBeForgotten) {
  jobs_.push_back(EndedJob("k7m2-1-1"));
  refuses_lists_ = refuses_jobs_ = true;
  Start({"k7m2-1-1"});
  EXPECT_FALSE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok()) << "nobody knows whether it is there";
  EXPECT_THAT(TakeChanges(), IsEmpty());
  Set([this] { refuses_jobs_ = false; });
  EXPECT_TRUE(ForgetOne(*backend_, Handle("k7m2-1-1")).ok());
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr(R"("ttlSecondsAfterFinished":60)")));
}

TEST_F(BackendSweepTest, WhatEndedLongAgoAndNobodyWantsGoesSoonOfThisInstanceAlone) {
  jobs_.push_back(EndedJob("k7m2-1-1"));
  jobs_.push_back(EndedJob("other-2-1"));
  jobs_.push_back(EndedJob("k7m2-3-1"));
  Start({"k7m2-3-1"});
  EXPECT_THAT(Issues(), Not(Contains(HasSubstr("no run of theirs"))));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("PATCH /apis/batch/v1/namespaces/lab/jobs/"
                                                   "k7m2-1-1 ")));
}

TEST_F(BackendSweepTest, AJobThatMayRunAndNobodyWantsIsToldOfAndLeftAlone) {
  jobs_.push_back(MakeJob("k7m2-1-1"));
  Start({"k7m2-9-1"});
  EXPECT_THAT(Issues(), Contains(HasSubstr("has no run for them: lab/k7m2-1-1; they are left "
                                           "alone")));
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(BackendSweepTest, HalfALaunchThatNobodyComesBackToIsDeleted) {
  jobs_.push_back(MakeJob("k7m2-1-1"));
  jobs_[0]["metadata"].erase("annotations");
  jobs_[0]["spec"]["suspend"] = true;
  Start({"k7m2-9-1"});
  EXPECT_THAT(Issues(), Not(Contains(HasSubstr("no run of theirs"))));
  EXPECT_THAT(TakeChanges(), ElementsAre(HasSubstr("DELETE /apis/batch/v1/namespaces/lab/jobs/"
                                                   "k7m2-1-1 ")));
}

}  // namespace
}  // namespace muster::kubernetes
