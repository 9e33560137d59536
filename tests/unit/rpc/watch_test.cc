#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

// The client's end of WatchJobs.
class WatchReader {
 public:
  WatchReader(TestBroker& broker, const v1::WatchJobsRequest& request)
      : stream_(broker.jobs().WatchJobs(context_.get(), request)) {}
  ~WatchReader() {
    if (finished_) return;
    context_->TryCancel();
    Finish();
  }

  // The next transition, whatever signs of life come between; none: the stream has ended.
  std::optional<v1::WatchJobsResponse> Next() {
    v1::WatchJobsResponse response;
    while (stream_->Read(&response)) {
      if (response.job_id() != 0) return response;
    }
    return std::nullopt;
  }
  // The next message, a sign of life too.
  v1::WatchJobsResponse NextMessage() {
    v1::WatchJobsResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  std::vector<v1::JobState> NextStates(int count) {
    std::vector<v1::JobState> states;
    for (int i = 0; i < count; ++i) {
      const auto response = Next();
      if (!response) break;
      states.push_back(response->transition().job_state());
    }
    return states;
  }
  // Reads to the end.
  grpc::Status Finish() {
    finished_ = true;
    v1::WatchJobsResponse ignored;
    while (stream_->Read(&ignored)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_ = Call();
  std::unique_ptr<grpc::ClientReader<v1::WatchJobsResponse>> stream_;
  bool finished_ = false;
};

v1::WatchJobsRequest WatchJob(uint64_t id) {
  v1::WatchJobsRequest request;
  request.add_job_ids(id);
  return request;
}

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
  while (seen.size() < kJobs) {
    WatchReader watch(broker, request);
    for (int i = 0; i < 137 && seen.size() < kJobs; ++i) {
      const auto step = watch.Next();
      ASSERT_TRUE(step.has_value());
      seen.push_back(step->job_id());
      request.set_after_sequence(static_cast<int64_t>(step->transition().sequence()));
    }
  }
  for (int i = 0; i < kJobs; ++i) ASSERT_EQ(seen[i], static_cast<uint64_t>(i + 1));
}

TEST(WatchJobs, FromNowOnLeavesThePastOut) {
  TestBroker broker;
  broker.Submit();
  v1::WatchJobsRequest request;
  request.set_after_sequence(-1);
  WatchReader watch(broker, request);
  // Where "now" is, the broker decides; one of the jobs that are submitted meanwhile is the first.
  std::thread submitter([&] {
    for (int i = 0; i < 200; ++i) broker.Submit();
  });
  const auto first = watch.Next();
  submitter.join();
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->job_id(), 1u);
  EXPECT_EQ(watch.Next()->job_id(), first->job_id() + 1);
}

TEST(WatchJobs, FromNowOnSaysFirstWhereNowIsSoThatALostStreamCanBeResumed) {
  TestBroker broker;
  v1::WatchJobsRequest request = WatchJob(broker.Submit());
  const auto past = WatchReader(broker, request).Next();
  ASSERT_TRUE(past.has_value());
  request.Clear();
  request.set_after_sequence(-1);
  const v1::WatchJobsResponse now = WatchReader(broker, request).NextMessage();
  EXPECT_EQ(now.job_id(), 0u);
  ASSERT_TRUE(now.has_sequence());
  EXPECT_GE(now.sequence(), past->transition().sequence());
  // What happens while nobody watches.
  const uint64_t missed = broker.Submit();
  request.set_after_sequence(static_cast<int64_t>(now.sequence()));
  EXPECT_EQ(WatchReader(broker, request).Next()->job_id(), missed);
}

TEST(WatchJobs, EndsWhenAllJobsHaveEnded) {
  TestBroker broker;
  v1::WatchJobsRequest request = WatchJob(broker.Submit());
  request.add_job_ids(broker.Submit());
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
  WatchReader watch(broker, watch_request);
  EXPECT_EQ(watch.Next()->job_id(), id);
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

TEST(WatchJobs, AQuietStreamGivesASignOfLife) {
  TestBroker broker;
  auto context = Call();
  auto stream = broker.jobs().WatchJobs(context.get(), WatchJob(broker.Submit()));
  v1::WatchJobsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.job_id(), 1u);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.job_id(), 0u);
  context->TryCancel();
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
  WatchReader watch(broker, {});
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
