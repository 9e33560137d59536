// Tests signals to running jobs: what the broker asks the agents of their clusters.
#include "broker/app/signal_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "rpc/status.h"
#include "rpc/status_message.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::string Reason(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

bool ConnectSignaler(FakeAgent& agent) {
  return agent.Connect(
      [](agent::v1::AgentHello& hello) { hello.mutable_inventory()->set_sends_signals(true); });
}

// Runs a job whose command has started.
uint64_t RunJob(TestBroker& broker, FakeAgent& agent, std::string* run_key) {
  const uint64_t job = broker.Submit(SubmitTrue());
  *run_key = agent.ReadAssignments(1).at(0).run_key();
  agent.Report(*run_key, v1::RUN_STATE_LAUNCHING);
  agent.AwaitAck(agent.Report(*run_key, v1::RUN_STATE_RUNNING));
  return job;
}

// A call of SignalJobs that goes on beside the test.
struct SignalCall {
  SignalCall(TestBroker& broker, const std::vector<uint64_t>& jobs, const std::string& signal,
             v1::SignalTarget target = v1::SIGNAL_TARGET_UNSPECIFIED) {
    request.mutable_job_ids()->Assign(jobs.begin(), jobs.end());
    request.set_signal(signal);
    request.set_target(target);
    status = std::async(std::launch::async, [&broker, this] {
      return rpc::FromGrpc(broker.jobs().SignalJobs(Call().get(), request, &response));
    });
  }
  v1::SignalJobsRequest request;
  v1::SignalJobsResponse response;
  std::future<absl::Status> status;
};

agent::v1::AgentQuestion NextSignal(FakeAgent& agent) {
  while (auto message = agent.Read()) {
    if (message->has_question()) return message->question();
  }
  ADD_FAILURE() << "the stream ended: " << agent.Finish().error_message();
  return {};
}

void AnswerSignal(FakeAgent& agent, uint64_t id, const absl::Status& status) {
  agent::v1::ConnectRequest answer;
  answer.mutable_answer()->set_id(id);
  answer.mutable_answer()->mutable_signal();
  if (!status.ok()) *answer.mutable_answer()->mutable_error() = rpc::ToMessage(status);
  ASSERT_TRUE(agent.Write(answer));
}

TEST(SignalJobs, TheAgentGetsTheNumberAndTheTarget) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSignaler(agent));
  std::string run_key;
  const uint64_t job = RunJob(broker, agent, &run_key);
  SignalCall call(broker, {job}, "sigusr1");
  const agent::v1::AgentQuestion asked = NextSignal(agent);
  EXPECT_EQ(asked.signal().run_key(), run_key);
  EXPECT_EQ(asked.signal().signal(), 10u);
  EXPECT_EQ(asked.signal().target(), v1::SIGNAL_TARGET_COMMAND);
  AnswerSignal(agent, asked.id(), absl::OkStatus());
  ASSERT_TRUE(call.status.get().ok());
  ASSERT_EQ(call.response.signals_size(), 1);
  EXPECT_EQ(call.response.signals(0).job_id(), job);
  EXPECT_FALSE(call.response.signals(0).has_error());

  SignalCall batch(broker, {job}, "64", v1::SIGNAL_TARGET_BATCH);
  const agent::v1::AgentQuestion again = NextSignal(agent);
  EXPECT_EQ(again.signal().signal(), 64u);
  EXPECT_EQ(again.signal().target(), v1::SIGNAL_TARGET_BATCH);
  AnswerSignal(agent, again.id(), absl::FailedPreconditionError("it has ended"));
  ASSERT_TRUE(batch.status.get().ok());
  EXPECT_EQ(batch.response.signals(0).error().code(),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(batch.response.signals(0).error().message(), HasSubstr("it has ended"));
}

TEST(SignalJobs, EachJobHasAnAnswerOfItsOwn) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSignaler(agent));
  std::string run_key;
  const uint64_t running = RunJob(broker, agent, &run_key);
  v1::SubmitJobRequest held = SubmitTrue();
  held.set_held(true);
  const uint64_t waiting = broker.Submit(held);
  SignalCall call(broker, {waiting, running}, "TERM");
  AnswerSignal(agent, NextSignal(agent).id(), absl::OkStatus());
  ASSERT_TRUE(call.status.get().ok());
  ASSERT_EQ(call.response.signals_size(), 2);
  EXPECT_EQ(call.response.signals(0).error().reason(), "NOT_RUNNING");
  EXPECT_EQ(call.response.signals(1).job_id(), running);
  EXPECT_FALSE(call.response.signals(1).has_error());
}

TEST(SignalJobs, AnAgentThatSendsNoneIsNotAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  std::string run_key;
  const uint64_t job = RunJob(broker, agent, &run_key);
  SignalCall call(broker, {job}, "USR1");
  ASSERT_TRUE(call.status.get().ok());
  EXPECT_EQ(call.response.signals(0).error().reason(), "SIGNALS_NOT_SENT");
}

TEST(SignalJobs, AnAgentThatIsNotThereIsUnavailable) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSignaler(agent));
  std::string run_key;
  const uint64_t job = RunJob(broker, agent, &run_key);
  SignalCall call(broker, {job}, "USR1");
  NextSignal(agent);
  agent.Drop();
  ASSERT_TRUE(call.status.get().ok());
  EXPECT_EQ(call.response.signals(0).error().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
}

TEST(SignalJobs, OneUnknownJobMeansThatNobodyGetsASignal) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSignaler(agent));
  std::string run_key;
  const uint64_t job = RunJob(broker, agent, &run_key);
  SignalCall call(broker, {job, job + 1}, "USR1");
  EXPECT_EQ(Reason(call.status.get()), "UNKNOWN_JOB");
}

TEST(SignalJobs, AnAgentGetsAFewAtATime) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(ConnectSignaler(agent));
  std::string run_key;
  const uint64_t job = RunJob(broker, agent, &run_key);
  const std::vector<uint64_t> many(kSignalsAtATime + 2, job);
  SignalCall call(broker, many, "USR1");
  std::vector<uint64_t> ids;
  for (int i = 0; i < kSignalsAtATime; ++i) ids.push_back(NextSignal(agent).id());
  // The next one comes once one is answered.
  AnswerSignal(agent, ids[0], absl::OkStatus());
  const uint64_t fifth = NextSignal(agent).id();
  AnswerSignal(agent, ids[1], absl::OkStatus());
  const uint64_t sixth = NextSignal(agent).id();
  for (const uint64_t id : {ids[2], ids[3], fifth, sixth})
    AnswerSignal(agent, id, absl::OkStatus());
  ASSERT_TRUE(call.status.get().ok());
  EXPECT_EQ(call.response.signals_size(), static_cast<int>(many.size()));
}

TEST(SignalJobs, ABadRequestIsNamed) {
  TestBroker broker;
  const auto field = [&](const std::vector<uint64_t>& jobs, const std::string& signal) {
    SignalCall call(broker, jobs, signal);
    const auto bad = contract::GetBadRequest(call.status.get());
    return bad.has_value() ? bad->field_violations(0).field() : "";
  };
  EXPECT_EQ(field({}, "USR1"), "job_ids");
  EXPECT_EQ(field(std::vector<uint64_t>(kMaxSignaledJobs + 1, 1), "USR1"), "job_ids");
  EXPECT_EQ(field({1, 0}, "USR1"), "job_ids[1]");
  EXPECT_EQ(field({1}, ""), "signal");
  EXPECT_EQ(field({1}, "65"), "signal");
  EXPECT_EQ(field({1}, "KILLALL"), "signal");
}

}  // namespace
}  // namespace muster::broker
