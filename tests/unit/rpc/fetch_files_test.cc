// Tests files of runs: what the broker asks the run's agent, and when it stops waiting for it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "contract/errors.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

bool ConnectSender(FakeAgent& agent) {
  return agent.Connect(
      [](agent::v1::AgentHello& hello) { hello.mutable_inventory()->set_sends_files(true); });
}

// A call of FetchFiles that goes on beside the test.
struct Fetch {
  Fetch(TestBroker& broker, uint64_t job, uint32_t run = 0, uint32_t rank = 0,
        const std::string& path = "")
      : status(std::async(std::launch::async, [&broker, job, run, rank, path, this] {
          v1::FetchFilesRequest request;
          request.set_job_id(job);
          request.set_run(run);
          request.set_rank(rank);
          request.set_path(path);
          const auto context = Call();
          const auto stream = broker.files().FetchFiles(context.get(), request);
          for (v1::FetchFilesResponse piece; stream->Read(&piece);) chunks.push_back(piece.chunk());
          return stream->Finish();
        })) {}
  std::vector<std::string> chunks;  // once there is a status
  std::future<grpc::Status> status;
};

agent::v1::AgentQuestion NextQuestion(FakeAgent& agent) {
  while (auto message = agent.Read()) {
    if (message->has_question()) return message->question();
  }
  ADD_FAILURE() << "the stream ended: " << agent.Finish().error_message();
  return {};
}

void Accept(FakeAgent& agent, const agent::v1::AgentQuestion& question) {
  agent::v1::ConnectRequest answer;
  answer.mutable_answer()->set_id(question.id());
  answer.mutable_answer()->mutable_send_files();
  ASSERT_TRUE(agent.Write(answer));
}

// The agent's stream with the files.
struct Feed {
  Feed(TestBroker& broker, const FakeAgent& agent, const agent::v1::AgentQuestion& question)
      : stub(agent::v1::FileLinkService::NewStub(broker.NewChannel())),
        stream(stub->SendFiles(context.get(), &response)) {
    agent::v1::SendFilesRequest hello;
    hello.mutable_hello()->set_protocol_version(1);
    hello.mutable_hello()->set_cluster("gpu");
    hello.mutable_hello()->set_journal_id(agent.journal_id);
    hello.mutable_hello()->set_ticket(question.send_files().ticket());
    EXPECT_TRUE(stream->Write(hello));
  }
  void Send(const std::string& chunk) {
    agent::v1::SendFilesRequest message;
    message.set_chunk(chunk);
    EXPECT_TRUE(stream->Write(message));
  }
  std::unique_ptr<grpc::ClientContext> context = Call();
  agent::v1::SendFilesResponse response;
  std::unique_ptr<agent::v1::FileLinkService::Stub> stub;
  std::unique_ptr<grpc::ClientWriter<agent::v1::SendFilesRequest>> stream;
};

// Runs it on two nodes, which the agent has told of if they are named.
uint64_t RunOnTwoNodes(TestBroker& broker, FakeAgent& agent, std::vector<std::string> nodes,
                       std::string* run_key) {
  v1::SubmitJobRequest submit = SubmitTrue();
  submit.mutable_spec()->set_nodes(2);
  const uint64_t job = broker.Submit(submit);
  *run_key = agent.ReadAssignments(1).at(0).run_key();
  agent.Report(*run_key, v1::RUN_STATE_LAUNCHING);
  agent.AwaitAck(agent.Report(*run_key, v1::RUN_STATE_RUNNING, false, absl::ZeroDuration(), nodes));
  return job;
}

// The agent says where the results of a run are that runs.
void TellResults(FakeAgent& agent, const std::string& run_key, const std::string& directory) {
  agent::v1::ConnectRequest request;
  agent::v1::RunEvent& event = *request.mutable_events()->add_events();
  event.set_sequence(agent.next_sequence++);
  event.set_run_key(run_key);
  event.set_state(v1::RUN_STATE_RUNNING);
  event.set_results_directory(directory);
  ASSERT_TRUE(agent.Write(request));
  agent.AwaitAck(event.sequence());
}

TEST(FetchFiles, TheNameResultsLeadsToTheResultsDirectoryThatTheAgentHasTold) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  v1::SubmitJobRequest submit = SubmitTrue();
  submit.mutable_spec()->set_working_directory("/lustre/ann");
  const uint64_t job = broker.Submit(submit);
  const std::string run_key = agent.ReadAssignments(1).at(0).run_key();
  agent.Report(run_key, v1::RUN_STATE_LAUNCHING);
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_RUNNING));
  Fetch early(broker, job, 1, 0, "results");
  EXPECT_EQ(Reason(early.status.get()), "RUN_HAS_NO_FILES");
  TellResults(agent, run_key, "/lustre/results/1");
  Fetch other(broker, job, 1, 0, "resultsx");
  const grpc::Status refused = other.status.get();
  EXPECT_EQ(Reason(refused), "RUN_HAS_NO_FILES");
  EXPECT_THAT(refused.error_message(), HasSubstr(fmt::format("{}:results", job)));
  Fetch fetch(broker, job, 1, 0, "results/model");
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  EXPECT_EQ(question.send_files().results_directory(), "/lustre/results/1");
  EXPECT_EQ(question.send_files().path(), "results/model");
  agent.Drop();
  EXPECT_FALSE(fetch.status.get().ok());
}

TEST(FetchFiles, TheAgentIsToldTheNodeOfTheRankThatIsAskedFor) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  std::string run_key;
  const uint64_t job = RunOnTwoNodes(broker, agent, {"gpu8", "gpu3"}, &run_key);
  const std::vector<std::string> nodes = {"gpu8", "gpu3"};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Fetch fetch(broker, job, /*run=*/1, rank);
    const agent::v1::AgentQuestion question = NextQuestion(agent);
    EXPECT_EQ(question.send_files().run_key(), run_key);
    EXPECT_EQ(question.send_files().rank(), rank);
    EXPECT_EQ(question.send_files().node(), nodes[rank]);
    agent::v1::ConnectRequest refusal;
    refusal.mutable_answer()->set_id(question.id());
    refusal.mutable_answer()->mutable_error()->set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
    ASSERT_TRUE(agent.Write(refusal));
    EXPECT_EQ(fetch.status.get().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
}

TEST(FetchFiles, ANodeThatNobodyHasToldOfIsEmpty) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  std::string run_key;
  const uint64_t job = RunOnTwoNodes(broker, agent, {"gpu8"}, &run_key);
  Fetch fetch(broker, job, /*run=*/0, /*rank=*/1);
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  EXPECT_EQ(question.send_files().rank(), 1u);
  EXPECT_EQ(question.send_files().node(), "");
  agent.Drop();
  EXPECT_EQ(fetch.status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Clients take UNAVAILABLE without a reason for trouble between them and the broker.
TEST(FetchFiles, AHostThatDoesNotAnswerIsNoTroubleOfTheBrokers) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  std::string run_key;
  const uint64_t job = RunOnTwoNodes(broker, agent, {"gpu8", "gpu3"}, &run_key);
  google::rpc::Status down;
  down.set_code(grpc::StatusCode::UNAVAILABLE);
  down.set_message("host gpu8: connection refused");

  Fetch refused(broker, job);
  agent::v1::ConnectRequest refusal;
  refusal.mutable_answer()->set_id(NextQuestion(agent).id());
  *refusal.mutable_answer()->mutable_error() = down;
  ASSERT_TRUE(agent.Write(refusal));
  const grpc::Status at_once = refused.status.get();
  EXPECT_EQ(Reason(at_once), "FETCH_FAILED");
  EXPECT_THAT(at_once.error_message(), HasSubstr("host gpu8: connection refused"));

  Fetch cut(broker, job);
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  Feed feed(broker, agent, question);
  Accept(agent, question);
  agent::v1::SendFilesRequest end;
  *end.mutable_end() = down;
  EXPECT_TRUE(feed.stream->Write(end));
  EXPECT_EQ(Reason(cut.status.get()), "FETCH_FAILED");
}

TEST(FetchFiles, AnAgentThatNeverBeginsIsGivenUp) {
  TestBroker broker(
      [](BrokerOptions& options) { options.fetch.begin_patience = absl::Seconds(1); });
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  std::string run_key;
  Fetch fetch(broker, RunOnTwoNodes(broker, agent, {}, &run_key));
  Accept(agent, NextQuestion(agent));
  const grpc::Status status = fetch.status.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Reason(status), "FETCH_SILENT");
  EXPECT_THAT(status.error_message(), HasSubstr("the agent has not begun to send"));
}

TEST(FetchFiles, AnAgentThatFallsSilentIsCutOffAndTold) {
  TestBroker broker([](BrokerOptions& options) { options.fetch.max_silence = absl::Seconds(1); });
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSender(agent));
  std::string run_key;
  Fetch fetch(broker, RunOnTwoNodes(broker, agent, {}, &run_key));
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  Feed feed(broker, agent, question);
  Accept(agent, question);
  feed.Send("the first");
  const grpc::Status status = fetch.status.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Reason(status), "FETCH_SILENT");
  EXPECT_THAT(status.error_message(), HasSubstr("nothing more went for 1 s"));
  EXPECT_THAT(fetch.chunks, ElementsAre("the first"));
  EXPECT_EQ(feed.stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(FetchFiles, OnKubernetesTheRefusalSaysWhereFilesCanStay) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(
      [](agent::v1::AgentHello& hello) { hello.set_kind(v1::CLUSTER_KIND_KUBERNETES); }));
  std::string run_key;
  Fetch fetch(broker, RunOnTwoNodes(broker, agent, {}, &run_key));
  const grpc::Status status = fetch.status.get();
  EXPECT_EQ(Reason(status), "CLUSTER_SENDS_NO_FILES");
  EXPECT_EQ(status.error_message(),
            "cluster \"gpu\": a pod's files go with the pod. Let the command write what is to stay "
            "to a volume (kubernetes.volumes) or below results_directory, and read it "
            "there");
}

TEST(FetchFiles, OnKubernetesTheRefusalNamesResultsThatAreOnAVolume) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(
      [](agent::v1::AgentHello& hello) { hello.set_kind(v1::CLUSTER_KIND_KUBERNETES); }));
  std::string run_key;
  const uint64_t job = RunOnTwoNodes(broker, agent, {}, &run_key);
  TellResults(agent, run_key, "/data/results/1");
  Fetch fetch(broker, job, 0, 0, "results");
  const grpc::Status status = fetch.status.get();
  EXPECT_EQ(Reason(status), "CLUSTER_SENDS_NO_FILES");
  EXPECT_THAT(status.error_message(), HasSubstr("\"/data/results/1\" in its containers"));
  EXPECT_THAT(status.error_message(), HasSubstr("kubernetes.agent_roots"));
}

}  // namespace
}  // namespace muster::broker
