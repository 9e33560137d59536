// Runs whose Job is not there.
#include <string>

#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "k7m2-1-1";

class BackendGoneTest : public ScriptedClusterTest {
 protected:
  // A Job that cannot start, as long as `waiting` is what keeps its container.
  void HasJob(const char* waiting) {
    jobs_ = Json::array({MakeJob(kRun)});
    pods_ = Json::array(
        {{{"metadata",
           {{"name", std::string(kRun) + "-0"},
            {"namespace", "lab"},
            {"uid", "p"},
            {"labels", {{kRunLabel, kRun}}}}},
          {"spec", {{"nodeName", "node-1"}}},
          {"status",
           {{"phase", "Pending"},
            {"containerStatuses",
             {{{"name", "main"}, {"state", {{"waiting", {{"reason", waiting}}}}}}}}}}}});
  }
  void HasNothing() { jobs_ = pods_ = Json::array(); }
};

TEST_F(BackendGoneTest, WhyARunWasGivenUpSurvivesTheAgentAndItsJob) {
  HasJob("InvalidImageName");
  Start({kRun});
  const agents::ObserveOutcome first = Observe(kRun);
  ASSERT_EQ(first.observations.size(), 1) << first.scheduler;
  EXPECT_EQ(first.observations[0].state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(AwaitChange("DELETE "), ElementsAre(HasSubstr("DELETE ")));
  Set([this] { HasNothing(); });
  Start({kRun});
  const agents::ObserveOutcome second = Observe(kRun);
  ASSERT_EQ(second.observations.size(), 1) << second.scheduler;
  EXPECT_EQ(second.observations[0].state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(second.observations[0].failure.has_value());
  EXPECT_EQ(second.observations[0].failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_THAT(second.observations[0].failure->message(), HasSubstr("InvalidImageName"));
  EXPECT_THAT(second.observations[0].evidence.detail(), HasSubstr("it had been given up"));
  EXPECT_TRUE(ForgetOne(*backend_, Handle(kRun)).ok());
  Start({kRun});
  EXPECT_EQ(Observe(kRun).observations[0].state, v1::RUN_STATE_LOST) << "nothing is left of it";
}

TEST_F(BackendGoneTest, ARunThatWasGivenUpIsDeletedByTheNextAgentThoughItCouldStartNow) {
  HasJob("InvalidImageName");
  refuses_changes_ = true;
  Start({kRun});
  EXPECT_EQ(Observe(kRun).observations.size(), 1);
  EXPECT_THAT(AwaitChange("DELETE "), ElementsAre(HasSubstr("DELETE ")));
  Set([this] {
    HasJob("ContainerCreating");
    refuses_changes_ = false;
  });
  Start({kRun});
  const agents::ObserveOutcome outcome = Observe(kRun);
  ASSERT_EQ(outcome.observations.size(), 1) << outcome.scheduler;
  EXPECT_THAT(outcome.observations[0].reason.message(), HasSubstr("InvalidImageName"));
  EXPECT_THAT(AwaitChange("DELETE "), ElementsAre(HasSubstr("DELETE ")));
}

TEST_F(BackendGoneTest, WhatAnotherClusterLacksIsNotGone) {
  Start({kRun});
  Set([this] { identity_ = "cluster-2"; });
  const agents::ObserveOutcome outcome = Observe(kRun);
  EXPECT_EQ(outcome.scheduler.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(outcome.observations, IsEmpty());
  const auto info = contract::GetErrorInfo(backend_->Inventory().status());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "WRONG_CLUSTER");
}

}  // namespace
}  // namespace muster::kubernetes
