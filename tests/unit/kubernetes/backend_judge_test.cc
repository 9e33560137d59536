// What the backend says of a job that is being submitted.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BackendJudgeTest : public ScriptedClusterTest {
 protected:
  static v1::JobSpec Spec() {
    v1::JobSpec spec;
    spec.set_image("busybox:1");
    spec.set_nodes(1);
    spec.mutable_command()->set_script("true");
    return spec;
  }
};

TEST_F(BackendJudgeTest, ASubmitCostsTheApiServerNoDryRunAndAPlanDoes) {
  Start({});
  ASSERT_TRUE(backend_->Plan(Spec(), "").ok());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  ASSERT_TRUE(backend_->Plan(Spec(), "anna").ok());
  const std::vector<std::string> tried = TakeChanges();
  ASSERT_FALSE(tried.empty());
  EXPECT_THAT(tried.front(), HasSubstr("dryRun=All"));
}

TEST_F(BackendJudgeTest, WhatTheAgentItselfRefusesASubmitIsToldOf) {
  Start({});
  v1::JobSpec spec = Spec();
  spec.mutable_kubernetes()->set_namespace_("elsewhere");
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "");
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->checks_size(), 1);
  EXPECT_EQ(plan->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(plan->checks(0).seen(), HasSubstr("elsewhere"));
}

}  // namespace
}  // namespace muster::kubernetes
