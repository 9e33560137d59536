// Tests the questions that the broker asks agents on behalf of clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "broker/rpc/pending_questions.h"
#include "contract/errors.h"
#include "contract/issues.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

// A call of CheckCluster that goes on beside the test.
struct Check {
  Check(TestBroker& broker, const std::string& cluster, int seconds = 60)
      : status(std::async(std::launch::async, [&broker, cluster, seconds, this] {
          v1::CheckClusterRequest request;
          request.set_name(cluster);
          return broker.clusters().CheckCluster(Call(seconds).get(), request, &response);
        })) {}
  v1::CheckClusterResponse response;
  std::future<grpc::Status> status;
};

// The next question that the agent gets, whatever else it gets before.
agent::v1::AgentQuestion NextQuestion(FakeAgent& agent) {
  while (auto message = agent.Read()) {
    if (message->has_question()) return message->question();
  }
  ADD_FAILURE() << "the stream ended: " << agent.Finish().error_message();
  return {};
}

agent::v1::ConnectRequest AnswerTo(const agent::v1::AgentQuestion& question) {
  agent::v1::ConnectRequest request;
  request.mutable_answer()->set_id(question.id());
  return request;
}

agent::v1::ConnectRequest OneCheck(const agent::v1::AgentQuestion& question,
                                   const std::string& subject) {
  agent::v1::ConnectRequest request = AnswerTo(question);
  v1::ClusterCheck* check = request.mutable_answer()->mutable_check()->add_checks();
  check->set_subject(subject);
  check->set_result(v1::CHECK_RESULT_OK);
  return request;
}

TEST(Questions, AnAnswerReachesWhoeverAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  Check first(broker, "gpu");
  const agent::v1::AgentQuestion one = NextQuestion(agent);
  Check second(broker, "gpu");
  const agent::v1::AgentQuestion two = NextQuestion(agent);
  EXPECT_TRUE(one.has_check());
  ASSERT_NE(one.id(), two.id());
  ASSERT_TRUE(agent.Write(OneCheck(two, "the second")));
  ASSERT_TRUE(second.status.get().ok());
  ASSERT_TRUE(agent.Write(OneCheck(one, "the first")));
  ASSERT_TRUE(first.status.get().ok());
  EXPECT_EQ(first.response.checks(0).subject(), "the first");
  EXPECT_EQ(second.response.checks(0).subject(), "the second");
}

TEST(Questions, ADescriptionComesWithTheCluster) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::DescribeClusterResponse response;
  auto status = std::async(std::launch::async, [&] {
    v1::DescribeClusterRequest request;
    request.set_name("gpu");
    return broker.clusters().DescribeCluster(Call().get(), request, &response);
  });
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  ASSERT_TRUE(question.has_describe());
  agent::v1::ConnectRequest answer = AnswerTo(question);
  answer.mutable_answer()->mutable_describe()->add_nodes()->set_name("n1");
  ASSERT_TRUE(agent.Write(answer));
  ASSERT_TRUE(status.get().ok());
  EXPECT_EQ(response.cluster().name(), "gpu");
  EXPECT_EQ(response.details().nodes(0).name(), "n1");
}

TEST(Questions, TheAgentsErrorNamesItsCluster) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  Check check(broker, "gpu");
  agent::v1::ConnectRequest answer = AnswerTo(NextQuestion(agent));
  answer.mutable_answer()->mutable_error()->set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
  answer.mutable_answer()->mutable_error()->set_message("too many questions");
  ASSERT_TRUE(agent.Write(answer));
  const grpc::Status status = check.status.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("cluster \"gpu\": too many questions"));
}

TEST(Questions, AnAgentThatLeavesFailsWhatItWasAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  Check check(broker, "gpu");
  NextQuestion(agent);
  agent.Drop();
  const grpc::Status status = check.status.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "AGENT_LEFT");
}

TEST(Questions, AClusterWithoutAnAgentCannotBeAsked) {
  TestBroker broker;
  Check unknown(broker, "nosuch");
  EXPECT_EQ(unknown.status.get().error_code(), grpc::StatusCode::NOT_FOUND);
  {
    FakeAgent agent(broker);
    ASSERT_TRUE(agent.Connect());
    agent.Finish();
  }
  Check gone(broker, "gpu");
  const grpc::Status status = gone.status.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "AGENT_NOT_CONNECTED");
}

TEST(Questions, TheClientsOwnDeadlineEndsTheWait) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  Check check(broker, "gpu", /*seconds=*/1);
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  EXPECT_EQ(check.status.get().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  // The answer that comes too late is nobody's, and does no harm.
  ASSERT_TRUE(agent.Write(OneCheck(question, "late")));
  Check next(broker, "gpu");
  ASSERT_TRUE(agent.Write(OneCheck(NextQuestion(agent), "in time")));
  ASSERT_TRUE(next.status.get().ok());
  EXPECT_EQ(next.response.checks(0).subject(), "in time");
}

TEST(Questions, APlanComesFromEachConnectedClusterThatCouldTakeTheJob) {
  TestBroker broker;
  FakeAgent fits(broker, "fits");
  ASSERT_TRUE(fits.Connect());
  FakeAgent other(broker, "other");
  ASSERT_TRUE(other.Connect([](agent::v1::AgentHello& hello) {
    hello.set_journal_id("journal-2");
    hello.mutable_inventory()->set_identity("other");
  }));
  v1::PlanJobRequest request;
  *request.mutable_spec() = TrueSpec();
  request.mutable_spec()->mutable_placement()->add_clusters("fits");
  v1::PlanJobResponse response;
  auto status = std::async(std::launch::async,
                           [&] { return broker.jobs().PlanJob(Call().get(), request, &response); });
  const agent::v1::AgentQuestion question = NextQuestion(fits);
  EXPECT_EQ(question.plan().spec().command().argv().args(0), "true");
  EXPECT_NE(question.plan().user(), "");
  agent::v1::ConnectRequest answer = AnswerTo(question);
  answer.mutable_answer()->mutable_plan()->set_submission("sbatch ...");
  ASSERT_TRUE(fits.Write(answer));
  const grpc::Status ended = status.get();
  ASSERT_TRUE(ended.ok()) << ended.error_message();
  ASSERT_EQ(response.plans_size(), 1);
  EXPECT_EQ(response.plans(0).cluster(), "fits");
  EXPECT_EQ(response.plans(0).submission(), "sbatch ...");
}

TEST(Questions, APlanForAClusterThatHasAllTheRunsThatItTakesHasNoEstimate) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](agent::v1::AgentHello& hello) { hello.set_max_active_runs(1); }));
  for (const bool is_full : {false, true}) {
    v1::PlanJobRequest request;
    *request.mutable_spec() = TrueSpec();
    v1::PlanJobResponse response;
    auto status = std::async(std::launch::async, [&] {
      return broker.jobs().PlanJob(Call().get(), request, &response);
    });
    agent::v1::ConnectRequest answer = AnswerTo(NextQuestion(agent));
    answer.mutable_answer()->mutable_plan()->mutable_estimated_start_time()->set_seconds(1);
    ASSERT_TRUE(agent.Write(answer));
    ASSERT_TRUE(status.get().ok());
    ASSERT_EQ(response.plans_size(), 1);
    EXPECT_EQ(response.plans(0).has_estimated_start_time(), !is_full);
    ASSERT_EQ(response.plans(0).checks_size(), is_full ? 1 : 0);
    if (is_full) {
      const v1::ClusterCheck& check = response.plans(0).checks(0);
      EXPECT_EQ(check.code(), v1::CHECK_CODE_LIMITS);
      EXPECT_EQ(check.seen(), "the job fits; the cluster has 1 active runs of at most 1")
          << "in the words of the reason why a job waits";
      break;
    }
    v1::SubmitJobRequest submit;
    *submit.mutable_spec() = TrueSpec();
    submit.set_request_id("fills-it");
    v1::SubmitJobResponse accepted;
    ASSERT_TRUE(broker.jobs().SubmitJob(Call().get(), submit, &accepted).ok());
    agent.ReadAssignments(1);
  }
}

// Connects an agent of a Kubernetes cluster whose pool takes no jobs; with an empty state it has no
// nodes.
void ConnectShut(const std::string& state, const v1::ClusterIssue& issue, FakeAgent* agent) {
  ASSERT_TRUE(agent->Connect([&](agent::v1::AgentHello& hello) {
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    v1::Pool* pool = hello.mutable_inventory()->mutable_pools(0);
    pool->set_name("lab");
    pool->set_available(false);
    pool->set_state(state);
    pool->clear_node_groups();
    *hello.mutable_inventory()->add_issues() =
        contract::PoolShut({.name = "la", .state = "missing", .detail = "elsewhere"});
    *hello.mutable_inventory()->add_issues() = issue;
  }));
}

TEST(Questions, APlanForANamespaceThatIsShutSaysThatAlone) {
  for (const std::string state : {"missing", "forbidden"}) {
    TestBroker broker;
    FakeAgent agent(broker);
    const contract::ShutNamespace shut = {
        .name = "lab", .state = state, .detail = "gone", .is_forbidden = state == "forbidden"};
    ConnectShut(state, contract::PoolShut(shut), &agent);
    v1::PlanJobRequest request;
    *request.mutable_spec() = TrueSpec();
    v1::PlanJobResponse response;
    ASSERT_TRUE(broker.jobs().PlanJob(Call().get(), request, &response).ok());
    ASSERT_EQ(response.plans_size(), 1);
    ASSERT_EQ(response.plans(0).checks_size(), 1);
    const v1::ClusterCheck& check = response.plans(0).checks(0);
    EXPECT_EQ(check.result(), v1::CHECK_RESULT_WARN);
    EXPECT_EQ(check.code(), v1::CHECK_CODE_POOL);
    EXPECT_THAT(check.seen(), HasSubstr("takes no jobs at the moment: it is " + state));
    EXPECT_EQ(check.remedy(),
              contract::ShutNamespaceRemedy(shut) + "; until then the job waits in Muster's queue");
    ASSERT_EQ(response.plans(0).warnings_size(), 1) << "as a submit would";
    EXPECT_EQ(response.plans(0).warnings(0).cluster(), "gpu");
    EXPECT_EQ(response.plans(0).warnings(0).subject(), "pool");
  }
}

TEST(Questions, APlanForAClusterThatHasNoNodesNowIsTheClustersAllTheSame) {
  TestBroker broker;
  FakeAgent agent(broker);
  ConnectShut("", contract::NoNodes(), &agent);
  v1::PlanJobRequest request;
  *request.mutable_spec() = TrueSpec();
  v1::PlanJobResponse response;
  auto status = std::async(std::launch::async,
                           [&] { return broker.jobs().PlanJob(Call().get(), request, &response); });
  agent::v1::ConnectRequest answer = AnswerTo(NextQuestion(agent));
  answer.mutable_answer()->mutable_plan()->set_submission("kind: Job\n");
  answer.mutable_answer()->mutable_plan()->add_checks()->set_subject("dry run");
  ASSERT_TRUE(agent.Write(answer));
  ASSERT_TRUE(status.get().ok());
  ASSERT_EQ(response.plans_size(), 1);
  EXPECT_EQ(response.plans(0).submission(), "kind: Job\n");
  ASSERT_EQ(response.plans(0).checks_size(), 2);
  EXPECT_EQ(response.plans(0).checks(0).subject(), "pool");
  EXPECT_THAT(response.plans(0).checks(0).remedy(), HasSubstr("Nothing, if that will pass"));
  EXPECT_EQ(response.plans(0).checks(1).subject(), "dry run");
}

TEST(Questions, AnAgentThatCannotPlanIsAFailedCheckOfItsPlan) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::PlanJobRequest request;
  *request.mutable_spec() = TrueSpec();
  v1::PlanJobResponse response;
  auto status = std::async(std::launch::async,
                           [&] { return broker.jobs().PlanJob(Call().get(), request, &response); });
  NextQuestion(agent);
  agent.Drop();
  ASSERT_TRUE(status.get().ok());
  ASSERT_EQ(response.plans_size(), 1);
  EXPECT_EQ(response.plans(0).checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_EQ(response.plans(0).checks(0).code(), v1::CHECK_CODE_SCHEDULER);
  EXPECT_THAT(response.plans(0).checks(0).seen(), HasSubstr("connection ended"));
}

TEST(Questions, ABadSpecIsRefusedAsInSubmitJobAndAPlanNeedsACluster) {
  TestBroker broker;
  v1::PlanJobResponse response;
  EXPECT_EQ(broker.jobs().PlanJob(Call().get(), {}, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::PlanJobRequest request;
  *request.mutable_spec() = TrueSpec();
  EXPECT_EQ(broker.jobs().PlanJob(Call().get(), request, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// ---- PendingQuestions alone

constexpr SteadyClock::time_point kStart{};

TEST(PendingQuestions, OneMoreThanTheBoundIsRefused) {
  PendingQuestions pending;
  int over = 0;
  for (size_t i = 0; i < kMaxPendingQuestions; ++i) {
    EXPECT_TRUE(
        pending.Add(kStart, [&](const absl::StatusOr<agent::v1::AgentAnswer>&) { ++over; }));
  }
  absl::Status refused;
  EXPECT_FALSE(pending.Add(kStart, [&](const absl::StatusOr<agent::v1::AgentAnswer>& answer) {
    refused = answer.status();
  }));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(over, 0);
  pending.End();
  EXPECT_EQ(over, static_cast<int>(kMaxPendingQuestions));
}

TEST(PendingQuestions, AQuestionExpiresAtItsDeadlineAndNotBefore) {
  PendingQuestions pending;
  absl::Status status;
  pending.Add(
      kStart + std::chrono::seconds(5),
      [&](const absl::StatusOr<agent::v1::AgentAnswer>& answer) { status = answer.status(); });
  pending.Expire(kStart + std::chrono::seconds(4));
  EXPECT_TRUE(status.ok());
  pending.Expire(kStart + std::chrono::seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(PendingQuestions, AnAnswerThatIsTooLargeIsAnError) {
  PendingQuestions pending;
  absl::Status status;
  const auto id = pending.Add(kStart, [&](const absl::StatusOr<agent::v1::AgentAnswer>& answer) {
    status = answer.status();
  });
  agent::v1::AgentAnswer answer;
  answer.set_id(*id);
  answer.mutable_plan()->set_submission(std::string(kMaxAnswerBytes + 1, '#'));
  pending.Answer(answer);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace muster::broker
