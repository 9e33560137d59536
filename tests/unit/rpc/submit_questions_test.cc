// What agents are asked before a job is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

void BeKubernetes(v1::AgentHello& hello) { hello.set_kind(v1::CLUSTER_KIND_KUBERNETES); }

// A job about which capacity alone says too little.
v1::SubmitJobRequest OnKubernetes(const std::string& request_id = "") {
  v1::SubmitJobRequest request = SubmitTrue(request_id);
  request.mutable_spec()->set_image("busybox:1");
  (*request.mutable_spec()->mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  return request;
}

// A submit that goes on beside the test.
struct Submitting {
  explicit Submitting(TestBroker& broker, v1::SubmitJobRequest request = OnKubernetes())
      : status(std::async(std::launch::async, [&broker, request = std::move(request), this] {
          return broker.jobs().SubmitJob(Call().get(), request, &response);
        })) {}
  v1::SubmitJobResponse response;
  std::future<grpc::Status> status;
};

// Answers the agent's next question with a plan: what speaks against the job, or nothing.
void Answer(FakeAgent& agent, const std::string& against) {
  while (auto message = agent.Read()) {
    if (!message->has_question()) continue;
    v1::ConnectRequest answer;
    answer.mutable_answer()->set_id(message->question().id());
    v1::ClusterCheck* check = answer.mutable_answer()->mutable_plan()->add_checks();
    check->set_subject("the job");
    check->set_result(against.empty() ? v1::CHECK_RESULT_OK : v1::CHECK_RESULT_FAIL);
    check->set_seen(against);
    ASSERT_TRUE(agent.Write(answer));
    return;
  }
  ADD_FAILURE() << "the stream ended: " << agent.Finish().error_message();
}

// Refuses all that the agent is asked until its stream ends; how many questions there were.
std::future<int> RefuseAll(FakeAgent& agent) {
  return std::async(std::launch::async, [&agent] {
    int count = 0;
    while (auto message = agent.Read()) {
      if (!message->has_question()) continue;
      ++count;
      v1::ConnectRequest answer;
      answer.mutable_answer()->set_id(message->question().id());
      answer.mutable_answer()->mutable_plan()->add_checks()->set_result(v1::CHECK_RESULT_FAIL);
      answer.mutable_answer()->mutable_plan()->mutable_checks(0)->set_seen("no");
      agent.Write(answer);
    }
    return count;
  });
}

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

TEST(SubmitQuestions, AJobThatTheOnlyClusterRefusesIsRefusedInItsWords) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting submit(broker);
  Answer(agent, "no node has disk=ssd");
  const grpc::Status status = submit.status.get();
  EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED");
  EXPECT_THAT(status.error_message(), HasSubstr("cluster \"gpu\": no node has disk=ssd"));
}

TEST(SubmitQuestions, WhatNobodyRefusedIsNotAskedAgainForJobsThatAreAlike) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting first(broker);
  Answer(agent, "");
  ASSERT_TRUE(first.status.get().ok());
  v1::SubmitJobRequest alike = OnKubernetes();
  alike.mutable_spec()->mutable_command()->mutable_argv()->add_args("other");
  auto questions = RefuseAll(agent);
  Submitting second(broker, alike);
  const grpc::Status status = second.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(second.response.job_id(), first.response.job_id());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AJobThatCapacityAloneJudgesAsksNobody) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  v1::SubmitJobRequest plain = SubmitTrue();
  plain.mutable_spec()->set_image("busybox:1");
  auto questions = RefuseAll(agent);
  Submitting submit(broker, plain);
  EXPECT_TRUE(submit.status.get().ok());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AClusterWhosePoolTakesNoJobsNowIsNotAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](v1::AgentHello& hello) {
    BeKubernetes(hello);
    hello.mutable_inventory()->mutable_pools(0)->set_available(false);
  }));
  auto questions = RefuseAll(agent);
  Submitting submit(broker);
  EXPECT_TRUE(submit.status.get().ok());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AClusterThatRefusesIsLeftOut) {
  TestBroker broker;
  FakeAgent refuses(broker, "a-refuses");
  ASSERT_TRUE(refuses.Connect(BeKubernetes));
  FakeAgent takes(broker, "b-takes");
  ASSERT_TRUE(takes.Connect([](v1::AgentHello& hello) {
    BeKubernetes(hello);
    hello.set_journal_id("journal-2");
  }));
  Submitting submit(broker);
  Answer(refuses, "no node has disk=ssd");
  Answer(takes, "");
  const grpc::Status status = submit.status.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(takes.ReadAssignments(1).size(), 1u);
}

TEST(SubmitQuestions, ARepeatOfAnAcceptedRequestIsAcceptedWhateverAgentsSayNow) {
  TestBroker broker;
  const uint64_t id = broker.Submit(OnKubernetes("once"));
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  auto questions = RefuseAll(agent);
  Submitting again(broker, OnKubernetes("once"));
  const grpc::Status status = again.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(again.response.job_id(), id);
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AnAgentThatGoesAwayRefusesNothing) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting submit(broker);
  while (auto message = agent.Read()) {
    if (message->has_question()) break;
  }
  agent.Drop();
  const grpc::Status status = submit.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace muster::broker
