// Tests the backend's judgement of a job before its launch, and what it publishes for that.
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

TEST_F(BackendJudgeTest, APlanIsTriedOnTheApiServerAndAnInventoryWritesNothing) {
  Start({});
  ASSERT_TRUE(backend_->Inventory().ok());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  ASSERT_TRUE(backend_->Plan(Spec(), "anna").ok());
  const std::vector<std::string> tried = TakeChanges();
  ASSERT_FALSE(tried.empty());
  EXPECT_THAT(tried.front(), HasSubstr("dryRun=All"));
}

// Returns the words of a check; empty if there is none of the subject.
std::string SeenOf(const v1::JobPlan& plan, const std::string& subject) {
  for (const v1::ClusterCheck& check : plan.checks()) {
    if (check.subject() == subject) return check.seen();
  }
  return "";
}

TEST_F(BackendJudgeTest, APlanOfAJobThatADefaultQueueTakesShowsItThereAndPromisesNoStart) {
  groups_ = {{{"name", "batch"}, {"preferredVersion", {{"version", "v1"}}}},
             {{"name", "kueue.x-k8s.io"}, {"preferredVersion", {{"version", "v1beta1"}}}}};
  queues_ = {{{"metadata", {{"name", "default"}, {"uid", "q"}}}}};
  Start({});
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(Spec(), "anna");
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->submission(), HasSubstr(R"(kueue.x-k8s.io/queue-name: "default")"));
  EXPECT_FALSE(plan->has_estimated_start_time());
  EXPECT_THAT(SeenOf(*plan, "room"),
              HasSubstr("Kueue decides when it starts, by the namespace's queue default"));
}

TEST_F(BackendJudgeTest, APlanOfAJobThatAGangSchedulerStartsSpeaksOfNoRoom) {
  groups_ = {{{"name", "scheduling.volcano.sh"}, {"preferredVersion", {{"version", "v1beta1"}}}}};
  Start({});
  v1::JobSpec spec = Spec();
  spec.mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_VOLCANO);
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "anna");
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(SeenOf(*plan, "room"), HasSubstr("gang scheduler"));
  EXPECT_FALSE(plan->has_estimated_start_time());
}

TEST_F(BackendJudgeTest, APlanWarnsOfAClaimThatIsNotThere) {
  Start({});
  v1::JobSpec spec = Spec();
  v1::KubernetesVolume* volume = spec.mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/data");
  volume->set_claim("nosuch");
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "anna");
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(SeenOf(*plan, "kubernetes.volumes[0].claim"), HasSubstr("\"nosuch\": there is none"));
}

TEST_F(BackendJudgeTest, TheInventoryHasWhatJobsAreJudgedBy) {
  groups_ = {{{"name", "batch"}, {"preferredVersion", {{"version", "v1"}}}},
             {{"name", "kueue.x-k8s.io"}, {"preferredVersion", {{"version", "v1beta1"}}}}};
  queues_ = {{{"metadata", {{"name", "night"}, {"uid", "q"}}}}};
  config_.allow_host_network = true;
  Start({});
  const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  const v1::KubernetesFacts& facts = inventory->admission().kubernetes();
  EXPECT_TRUE(facts.allows_host_network());
  EXPECT_GT(inventory->admission().max_archive_bytes(), 0u);
  ASSERT_EQ(facts.namespaces_size(), 1);
  EXPECT_EQ(facts.namespaces(0).name(), "lab");
  ASSERT_EQ(facts.namespaces(0).queues().names_size(), 1) << facts.DebugString();
  EXPECT_EQ(facts.namespaces(0).queues().names(0), "night");
  const auto& groups = facts.scheduler_groups().names();
  EXPECT_THAT(std::vector<std::string>(groups.begin(), groups.end()),
              testing::Contains("kueue.x-k8s.io"));
}

TEST_F(BackendJudgeTest, WhatTheAgentItselfRefusesAPlanTellsWithoutATrial) {
  Start({});
  v1::JobSpec spec = Spec();
  spec.mutable_kubernetes()->set_namespace_("elsewhere");
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "anna");
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->checks_size(), 1);
  EXPECT_EQ(plan->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(plan->checks(0).seen(), HasSubstr("elsewhere"));
}

}  // namespace
}  // namespace muster::kubernetes
