// Tests the warnings of a submit: a job that is accepted and waits for its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/rpc/await_loss.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the warnings in the answer to a submit that is accepted.
std::vector<std::string> WarningsWith(TestBroker& broker, const v1::SubmitJobRequest& request) {
  v1::SubmitJobResponse response;
  EXPECT_TRUE(broker.jobs().SubmitJob(Call().get(), request, &response).ok());
  std::vector<std::string> warnings;
  for (const v1::SubmitWarning& warning : response.warnings()) {
    EXPECT_EQ(warning.code(), v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
    EXPECT_EQ(warning.cluster(), "gpu");
    EXPECT_NE(warning.remedy(), "");
    warnings.push_back(warning.message());
  }
  return warnings;
}

TEST(SubmitWarnings, AJobWhosePoolTakesNoJobsIsAcceptedWithAWarningAndListedWithTheReason) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](agent::v1::AgentHello& hello) {
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    v1::Pool* pool = hello.mutable_inventory()->mutable_pools(0);
    pool->set_name("team");
    pool->set_available(false);
    pool->set_state("missing");
  }));
  const std::string reason =
      "cluster \"gpu\": pool \"team\" takes no jobs at the moment: it is missing";
  v1::SubmitJobRequest request = SubmitTrue();
  EXPECT_THAT(WarningsWith(broker, request), IsEmpty()) << "it did not name the pool";
  request.mutable_spec()->mutable_placement()->set_pool("team");
  EXPECT_THAT(WarningsWith(broker, request), ElementsAre("job 2 waits: " + reason));
  request.set_validate_only(true);
  EXPECT_THAT(WarningsWith(broker, request), IsEmpty()) << "there is no job";
  v1::ListJobsResponse listed;
  ASSERT_TRUE(broker.jobs().ListJobs(Call().get(), {}, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 2);
  EXPECT_EQ(listed.jobs(0).state_reason().message(), reason);
  EXPECT_EQ(listed.jobs(1).state_reason().message(), reason);
}

TEST(SubmitWarnings, AJobForAClusterWhoseAgentIsGoneIsAcceptedWithAWarning) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::SubmitJobRequest request = SubmitTrue();
  request.mutable_spec()->mutable_placement()->add_clusters("gpu");
  EXPECT_THAT(WarningsWith(broker, request), IsEmpty());
  agent.Drop();
  ASSERT_TRUE(AwaitLoss(broker, "gpu"));
  EXPECT_THAT(
      WarningsWith(broker, request),
      ElementsAre(
          "job 2 waits: cluster \"gpu\": the job fits, but the cluster's agent is not connected"));
}

TEST(SubmitWarnings, WhatAnAgentHasPublishedRefusesOrWarnsAndNobodyIsAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](agent::v1::AgentHello& hello) {
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    const std::string pool = hello.inventory().pools(0).name();
    v1::KubernetesFacts* facts =
        hello.mutable_inventory()->mutable_admission()->mutable_kubernetes();
    v1::NamespaceFacts* space = facts->add_namespaces();
    space->set_name(pool);
    space->mutable_claims();
    facts->mutable_priority_classes()->add_names("low");
  }));
  v1::SubmitJobRequest request = SubmitTrue();
  request.mutable_spec()->set_image("busybox:1");
  v1::KubernetesOptions* options = request.mutable_spec()->mutable_kubernetes();
  options->set_priority_class("high");
  v1::SubmitJobResponse response;
  const grpc::Status refused = broker.jobs().SubmitJob(Call().get(), request, &response);
  EXPECT_EQ(refused.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("kubernetes.priority_class \"high\": there is none; it has \"low\""));
  options->set_priority_class("low");
  v1::KubernetesVolume* volume = options->add_volumes();
  volume->set_mount_path("/data");
  volume->set_claim("nosuch");
  EXPECT_THAT(WarningsWith(broker, request),
              ElementsAre(HasSubstr("on cluster gpu: kubernetes.volumes[0].claim \"nosuch\"")));
  // The first message to it is the run.
  EXPECT_EQ(agent.ReadAssignments(1).size(), 1u);
}

}  // namespace
}  // namespace muster::broker
