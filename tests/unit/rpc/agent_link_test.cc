#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/await_loss.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

TEST(AgentLink, AJobIsAssignedReportedAndAcknowledged) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  EXPECT_EQ(agent.welcome().instance(), kInstance);
  const uint64_t id = broker.Submit();
  const auto assignments = agent.ReadAssignments(1);
  ASSERT_EQ(assignments.size(), 1u);
  EXPECT_EQ(assignments[0].run_key(), "k7m2-1-1");
  EXPECT_EQ(assignments[0].spec().command().argv().args(0), "true");
  EXPECT_NE(assignments[0].user(), "");
  agent.Succeed(assignments[0].run_key());
  const v1::Job job = broker.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.cluster(), "gpu");
}

TEST(AgentLink, JobsThatWaitedAreAssignedWithTheirSpecs) {
  TestBroker broker;
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < 200; ++i) *batch.add_requests() = SubmitTrue();
  v1::SubmitJobsResponse responses;
  ASSERT_TRUE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  for (const auto& assignment : agent.ReadAssignments(200)) {
    EXPECT_EQ(assignment.spec().name(), "true");
  }
}

TEST(AgentLink, AnAssignmentIsOnDiskBeforeItIsSent) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const uint64_t id = broker.Submit();
  const auto assignments = agent.ReadAssignments(1);
  const auto job = broker.store().GetJob(store::Scope::All(), id);
  ASSERT_TRUE(job.ok());
  ASSERT_EQ(job->runs_size(), 1);
  EXPECT_EQ(job->runs(0).run_key(), assignments[0].run_key());
}

TEST(AgentLink, LargeSpecsTravelInMessagesThatAnyAgentCanReceive) {
  TestBroker broker;
  v1::SubmitJobRequest request;
  request.mutable_spec()->mutable_command()->set_script(std::string(1'000'000, '#'));
  for (int i = 0; i < 10; ++i) broker.Submit(request);
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  int runs = 0;
  while (runs < 10) {
    const auto message = agent.Read();
    ASSERT_TRUE(message.has_value()) << agent.Finish().error_message();
    EXPECT_LE(message->ByteSizeLong(), size_t{4} << 20);
    runs += message->assignments().assignments_size();
  }
}

TEST(AgentLink, AnAgentThatDoesNotReadIsClosedBeforeItsQueueHoldsGigabytes) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::SubmitJobRequest request;
  request.mutable_spec()->mutable_command()->set_script(std::string(1'000'000, '#'));
  constexpr int kRuns = 320;  // more than the queue, and what gRPC holds besides
  for (int i = 0; i < kRuns; ++i) broker.Submit(request);
  int runs = 0;
  while (runs < kRuns) {
    const auto message = agent.Read();
    if (!message) break;
    runs += message->assignments().assignments_size();
  }
  EXPECT_LT(runs, kRuns);
}

TEST(AgentLink, ACancelReachesTheAgentThatHasTheRun) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  v1::CancelJobsRequest request;
  request.add_job_ids(broker.Submit());
  const auto assignments = agent.ReadAssignments(1);
  v1::CancelJobsResponse response;
  ASSERT_TRUE(broker.jobs().CancelJobs(Call().get(), request, &response).ok());
  while (const auto message = agent.Read()) {
    if (!message->has_cancellations()) continue;
    EXPECT_EQ(message->cancellations().run_keys(0), assignments[0].run_key());
    return;
  }
  FAIL() << "no cancellation came";
}

TEST(AgentLink, AfterAReconnectionTheAgentIsToldWhatItDoesNotHold) {
  TestBroker broker;
  {
    FakeAgent agent(broker);
    ASSERT_TRUE(agent.Connect());
    broker.Submit();
    agent.ReadAssignments(1);
    agent.Drop();
  }
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const auto assignments = agent.ReadAssignments(1);
  EXPECT_TRUE(assignments[0].may_have_been_launched());
}

TEST(AgentLink, AnotherProtocolVersionIsRefused) {
  TestBroker broker;
  FakeAgent agent(broker);
  EXPECT_FALSE(agent.Connect([](agent::v1::AgentHello& hello) { hello.set_protocol_version(99); }));
  const grpc::Status status = agent.Finish();
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "PROTOCOL_VERSION");
}

TEST(AgentLink, AnAgentOfAnotherBrokerIsRefused) {
  TestBroker broker;
  FakeAgent agent(broker);
  EXPECT_FALSE(agent.Connect([](agent::v1::AgentHello& hello) { hello.set_instance("zzzz"); }));
  EXPECT_EQ(Reason(agent.Finish()), "WRONG_INSTANCE");
}

TEST(AgentLink, ANameThatIsConnectedWithAnotherJournalIsRefused) {
  TestBroker broker;
  FakeAgent first(broker);
  ASSERT_TRUE(first.Connect());
  FakeAgent second(broker);
  second.journal_id = "journal-2";
  EXPECT_FALSE(second.Connect());
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::ALREADY_EXISTS);
  EXPECT_EQ(Reason(status), "NAME_CONNECTED");
}

TEST(AgentLink, TheSameAgentTakesItsNameOver) {
  TestBroker broker;
  FakeAgent first(broker);
  ASSERT_TRUE(first.Connect());
  FakeAgent second(broker);
  ASSERT_TRUE(second.Connect());
  EXPECT_GT(second.welcome().agent_epoch(), first.welcome().agent_epoch());
  while (first.Read()) {
  }
  broker.Submit();
  EXPECT_EQ(second.ReadAssignments(1).size(), 1u);
}

TEST(AgentLink, TheFirstMessageMustBeTheHello) {
  TestBroker broker;
  FakeAgent agent(broker);
  agent::v1::ConnectRequest request;
  request.mutable_heartbeat();
  agent.Write(request);
  EXPECT_EQ(agent.Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST(AgentLink, ASecondHelloEndsTheStream) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  agent::v1::ConnectRequest request;
  request.mutable_hello();
  agent.Write(request);
  EXPECT_EQ(agent.Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST(AgentLink, AGapInTheEventsEndsTheStream) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  broker.Submit();
  const auto assignments = agent.ReadAssignments(1);
  agent.next_sequence = 7;
  agent.Report(assignments[0].run_key(), v1::RUN_STATE_RUNNING);
  while (agent.Read()) {
  }
  EXPECT_FALSE(agent.Finish().ok());
}

TEST(AgentLink, ABurstOfSmallReportsIsAppliedInOrder) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  broker.Submit();
  const auto assignments = agent.ReadAssignments(1);
  agent.Report(assignments[0].run_key(), v1::RUN_STATE_RUNNING);
  uint64_t last = 0;
  for (int i = 0; i < 500; ++i) {
    last = agent.Report(assignments[0].run_key(), v1::RUN_STATE_RUNNING);
  }
  agent.AwaitAck(last);
}

TEST(Clusters, AConnectedClusterIsListedAndADisconnectedOneRemembered) {
  TestBroker broker;
  v1::GetClusterRequest request;
  request.set_name("gpu");
  v1::GetClusterResponse response;
  EXPECT_EQ(broker.clusters().GetCluster(Call().get(), request, &response).error_code(),
            grpc::NOT_FOUND);
  {
    FakeAgent agent(broker);
    ASSERT_TRUE(agent.Connect());
    ASSERT_TRUE(broker.clusters().GetCluster(Call().get(), request, &response).ok());
    EXPECT_EQ(response.cluster().state(), v1::CLUSTER_STATE_CONNECTED);
  }
  EXPECT_TRUE(AwaitLoss(broker, "gpu"));
}

TEST(Clusters, PagesGoByName) {
  TestBroker broker;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (const char* name : {"c", "a", "b"}) {
    agents.push_back(std::make_unique<FakeAgent>(broker, name));
    ASSERT_TRUE(agents.back()->Connect());
  }
  v1::ListClustersRequest request;
  request.set_page_size(2);
  v1::ListClustersResponse page;
  ASSERT_TRUE(broker.clusters().ListClusters(Call().get(), request, &page).ok());
  ASSERT_EQ(page.clusters_size(), 2);
  EXPECT_EQ(page.clusters(0).name(), "a");
  EXPECT_EQ(page.clusters(1).name(), "b");
  request.set_page_token(page.next_page_token());
  ASSERT_TRUE(broker.clusters().ListClusters(Call().get(), request, &page).ok());
  ASSERT_EQ(page.clusters_size(), 1);
  EXPECT_EQ(page.clusters(0).name(), "c");
  EXPECT_EQ(page.next_page_token(), "");
}

TEST(Clusters, APageIsSmallEnoughForGrpcHoweverLargeTheInventories) {
  TestBroker broker;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int i = 0; i < 8; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(broker, std::string("c") + std::to_string(i)));
    ASSERT_TRUE(agents.back()->Connect([](agent::v1::AgentHello& hello) {
      hello.mutable_inventory()->add_issues()->set_message(std::string(900 << 10, 'r'));
    }));
  }
  std::vector<std::string> names;
  v1::ListClustersRequest request;
  do {
    v1::ListClustersResponse page;
    const grpc::Status status = broker.clusters().ListClusters(Call().get(), request, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_GT(page.clusters_size(), 0);
    for (const v1::Cluster& cluster : page.clusters()) names.push_back(cluster.name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"));
}

}  // namespace
}  // namespace muster::broker
