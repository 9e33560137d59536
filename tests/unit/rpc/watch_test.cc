#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"
#include "tests/unit/rpc/watch_reader.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

TEST(WatchJobs, ShowsThePastAndThenTheFutureInOrder) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  WatchReader watch(broker, WatchJob(id));
  EXPECT_THAT(watch.NextStates(1), ElementsAre(v1::JOB_STATE_QUEUED));
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const auto assignments = agent.ReadAssignments(1);
  agent.Succeed(assignments[0].run_key());
  uint64_t job_sequence = 1;
  uint64_t sequence = 0;
  for (;;) {
    const auto step = watch.Next();
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->transition().job_sequence(), ++job_sequence);
    EXPECT_GT(step->transition().sequence(), sequence);
    sequence = step->transition().sequence();
    if (step->transition().job_state() == v1::JOB_STATE_SUCCEEDED) break;
  }
}

TEST(WatchJobs, ResumesAfterASequenceWithoutSkippingOrRepeating) {
  TestBroker broker;
  constexpr int kJobs = 1000;
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < kJobs; ++i) *batch.add_requests() = SubmitTrue();
  v1::SubmitJobsResponse responses;
  ASSERT_TRUE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  std::vector<uint64_t> seen;
  v1::WatchJobsRequest request;
  request.mutable_beginning();
  while (seen.size() < kJobs) {
    WatchReader watch(broker, request);
    for (int i = 0; i < 137 && seen.size() < kJobs; ++i) {
      const auto step = watch.Next();
      ASSERT_TRUE(step.has_value());
      seen.push_back(step->job().id());
      request.set_after(step->sequence());
    }
  }
  for (int i = 0; i < kJobs; ++i) ASSERT_EQ(seen[i], static_cast<uint64_t>(i + 1));
}

TEST(WatchJobs, FromNowOnLeavesThePastOut) {
  TestBroker broker;
  broker.Submit();
  WatchReader watch(broker, v1::WatchJobsRequest());
  // The broker decides where "now" is; one of the jobs that are submitted meanwhile is the first.
  std::thread submitter([&] {
    for (int i = 0; i < 200; ++i) broker.Submit();
  });
  const auto first = watch.Next();
  submitter.join();
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->job().id(), 1u);
  EXPECT_EQ(watch.Next()->job().id(), first->job().id() + 1);
}

TEST(WatchJobs, FromNowOnSaysFirstWhereNowIsSoThatALostStreamCanBeResumed) {
  TestBroker broker;
  v1::WatchJobsRequest request = WatchJob(broker.Submit());
  const auto past = WatchReader(broker, request).Next();
  ASSERT_TRUE(past.has_value());
  request.Clear();
  request.mutable_now();
  const v1::WatchJobsResponse now = WatchReader(broker, request).NextMessage();
  ASSERT_TRUE(now.has_heartbeat());
  EXPECT_GE(now.heartbeat().sequence(), past->sequence());
  // Nobody watches this change.
  const uint64_t missed = broker.Submit();
  request.set_after(now.heartbeat().sequence());
  EXPECT_EQ(WatchReader(broker, request).Next()->job().id(), missed);
}

TEST(WatchJobs, EndsWhenAllJobsHaveEnded) {
  TestBroker broker;
  v1::WatchJobsRequest request = WatchJob(broker.Submit());
  request.add_job_ids(broker.Submit());
  request.mutable_beginning();
  request.set_until_terminal(true);
  WatchReader watch(broker, request);
  v1::CancelJobsRequest cancel;
  cancel.add_job_ids(1);
  cancel.add_job_ids(2);
  v1::CancelJobsResponse response;
  ASSERT_TRUE(broker.jobs().CancelJobs(Call().get(), cancel, &response).ok());
  int ended = 0;
  while (const auto step = watch.Next()) {
    ended += step->transition().job_state() == v1::JOB_STATE_CANCELED;
  }
  EXPECT_GE(ended, 2);
  EXPECT_TRUE(watch.Finish().ok());
}

TEST(WatchJobs, AFilterTakesTheJobsThatMatch) {
  TestBroker broker;
  v1::SubmitJobRequest request = SubmitTrue();
  broker.Submit(request);
  (*request.mutable_spec()->mutable_labels())["team"] = "vision";
  const uint64_t id = broker.Submit(request);
  v1::WatchJobsRequest watch_request;
  watch_request.set_filter("label.team = \"vision\"");
  watch_request.mutable_beginning();
  WatchReader watch(broker, watch_request);
  EXPECT_EQ(watch.Next()->job().id(), id);
}

TEST(WatchJobs, AnUnknownJobIsNotFound) {
  TestBroker broker;
  WatchReader watch(broker, WatchJob(42));
  EXPECT_EQ(watch.Finish().error_code(), grpc::NOT_FOUND);
}

TEST(WatchJobs, IdsAndFilterTogetherAreRefused) {
  TestBroker broker;
  v1::WatchJobsRequest request = WatchJob(broker.Submit());
  request.set_filter("state = QUEUED");
  WatchReader watch(broker, request);
  EXPECT_EQ(watch.Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST(WatchJobs, AStreamBeginsWithAHeartbeatAndGivesOneWhenItIsQuiet) {
  TestBroker broker(
      [](BrokerOptions& options) { options.heartbeat_interval = absl::Milliseconds(1); });
  WatchReader watch(broker, WatchJob(broker.Submit()));
  EXPECT_EQ(watch.NextMessage().heartbeat().sequence(), 0u) << "the beginning";
  const v1::WatchJobsResponse message = watch.NextMessage();
  ASSERT_EQ(message.changes_size(), 1);
  const uint64_t sequence = message.changes(0).sequence();
  EXPECT_EQ(watch.NextMessage().heartbeat().sequence(), sequence);
}

TEST(WatchJobs, AReaderThatStopsReadingHoldsUpNobody) {
  TestBroker broker;
  v1::SubmitJobRequest wide = SubmitTrue();
  for (int i = 0; i < 60; ++i) {
    (*wide.mutable_spec()->mutable_labels())["label-" + std::to_string(i)] = std::string(60, 'v');
  }
  auto context = Call();
  auto idle = broker.jobs().WatchJobs(context.get(), {});
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < 1000; ++i) *batch.add_requests() = wide;
  for (int i = 0; i < 5; ++i) {
    v1::SubmitJobsResponse responses;
    ASSERT_TRUE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  }
  v1::WatchJobsRequest all;
  all.mutable_beginning();
  WatchReader watch(broker, all);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(watch.Next().has_value());
  context->TryCancel();
}

TEST(WatchJobs, MoreStreamsThanTheBrokerTakesAreRefused) {
  TestBroker broker([](BrokerOptions& options) { options.max_streams = 1; });
  const uint64_t id = broker.Submit();
  WatchReader first(broker, WatchJob(id));
  ASSERT_TRUE(first.Next().has_value());
  WatchReader second(broker, WatchJob(id));
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(contract::GetRetryDelay(rpc::FromGrpc(status)).has_value());
}

}  // namespace
}  // namespace muster::broker
