// ReadLog and LogLink, end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "contract/errors.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The agent's end of LogLink.
class FakePusher {
 public:
  explicit FakePusher(TestBroker& broker)
      : stub_(agent::v1::LogLinkService::NewStub(broker.NewChannel())),
        stream_(stub_->Push(context_.get())) {}
  ~FakePusher() {
    if (finished_) return;
    context_->TryCancel();
    Finish();
  }

  void Hello(const std::string& journal_id = "journal-1", uint32_t version = 1) {
    agent::v1::PushRequest request;
    request.mutable_hello()->set_protocol_version(version);
    request.mutable_hello()->set_cluster("gpu");
    request.mutable_hello()->set_journal_id(journal_id);
    stream_->Write(request);
  }
  bool Write(const std::string& run_key, uint64_t offset, const std::string& data, bool end = false,
             v1::LogStream stream = v1::LOG_STREAM_STDOUT) {
    agent::v1::PushRequest request;
    agent::v1::LogChunk& chunk = *request.mutable_chunk();
    chunk.set_run_key(run_key);
    chunk.set_stream(stream);
    chunk.set_offset(offset);
    chunk.set_data(data);
    chunk.set_end(end);
    return stream_->Write(request);
  }
  std::optional<agent::v1::PushResponse> Read() {
    agent::v1::PushResponse response;
    if (stream_->Read(&response)) return response;
    return std::nullopt;
  }
  // Writes and waits for the answer.
  agent::v1::PushResponse Push(const std::string& run_key, uint64_t offset, const std::string& data,
                               bool end = false, v1::LogStream stream = v1::LOG_STREAM_STDOUT) {
    EXPECT_TRUE(Write(run_key, offset, data, end, stream));
    const auto response = Read();
    EXPECT_TRUE(response.has_value());
    return response.value_or(agent::v1::PushResponse());
  }
  grpc::Status Finish() {
    finished_ = true;
    stream_->WritesDone();
    while (Read()) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<agent::v1::LogLinkService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_ = Call();
  std::unique_ptr<grpc::ClientReaderWriter<agent::v1::PushRequest, agent::v1::PushResponse>>
      stream_;
  bool finished_ = false;
};

struct LogText {
  std::string data;
  v1::LogEnd end = v1::LOG_END_UNSPECIFIED;
  grpc::Status status;
};

// Describes one output.
v1::ReadLogRequest Log(uint64_t job, bool follow = false, uint64_t offset = 0) {
  v1::ReadLogRequest request;
  request.set_job_id(job);
  request.set_stream(v1::LOG_STREAM_STDOUT);
  request.set_follow(follow);
  if (offset > 0) {
    v1::LogPosition& position = *request.add_positions();
    position.set_stream(v1::LOG_STREAM_STDOUT);
    position.set_offset(offset);
  }
  return request;
}

LogText ReadAll(TestBroker& broker, const v1::ReadLogRequest& request) {
  LogText text;
  const uint64_t begin = request.positions().empty() ? 0 : request.positions(0).offset();
  auto context = Call();
  auto stream = broker.jobs().ReadLog(context.get(), request);
  v1::ReadLogResponse response;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.offset(), begin + text.data.size());
    EXPECT_EQ(response.stream(), request.stream());
    EXPECT_LE(response.data().size(), size_t{64} << 10);
    EXPECT_EQ(text.end, v1::LOG_END_UNSPECIFIED) << "nothing follows the end";
    text.data += response.data();
    text.end = response.end();
  }
  text.status = stream->Finish();
  return text;
}

// Asks for both outputs.
v1::ReadLogRequest BothLogs(uint64_t job, bool follow = false) {
  v1::ReadLogRequest request;
  request.set_job_id(job);
  request.set_follow(follow);
  return request;
}

struct BothTexts {
  std::string data;  // of both, as they came
  std::map<v1::LogStream, std::vector<v1::LogEnd>> ends;
  std::map<v1::LogStream, uint64_t> begins;
  grpc::Status status;
};

BothTexts ReadBoth(TestBroker& broker, const v1::ReadLogRequest& request) {
  BothTexts texts;
  auto context = Call();
  auto stream = broker.jobs().ReadLog(context.get(), request);
  v1::ReadLogResponse response;
  while (stream->Read(&response)) {
    texts.begins.try_emplace(response.stream(), response.offset());
    texts.data += response.data();
    if (response.end() != v1::LOG_END_UNSPECIFIED) {
      texts.ends[response.stream()].push_back(response.end());
    }
  }
  texts.status = stream->Finish();
  return texts;
}

// A broker, an agent with one run, and its pusher.
class LogsTest : public testing::Test {
 protected:
  explicit LogsTest(std::function<void(BrokerOptions&)> adjust = nullptr)
      : broker(std::move(adjust)) {
    EXPECT_TRUE(agent.Connect());
    job = broker.Submit();
    run_key = agent.ReadAssignments(1)[0].run_key();
    agent.Report(run_key, v1::RUN_STATE_LAUNCHING);
    agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_RUNNING));
    pusher.Hello();
  }

  TestBroker broker;
  FakeAgent agent{broker};
  FakePusher pusher{broker};
  uint64_t job = 0;
  std::string run_key;
};

TEST_F(LogsTest, WhatWasPushedCanBeReadAndMoreMayCome) {
  EXPECT_EQ(pusher.Push(run_key, 0, "hello\n").next_offset(), 6u);
  const LogText text = ReadAll(broker, Log(job));
  EXPECT_EQ(text.data, "hello\n");
  EXPECT_EQ(text.end, v1::LOG_END_MORE_LATER);
  EXPECT_EQ(ReadAll(broker, Log(job, false, 3)).data, "lo\n");
}

TEST_F(LogsTest, AFollowerSeesEveryByteUntilTheEnd) {
  LogText text;
  std::thread follower([&] { text = ReadAll(broker, Log(job, true)); });
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(5000, '.') + "\n";
    EXPECT_EQ(pusher.Push(run_key, sent.size(), line).next_offset(), sent.size() + line.size());
    sent += line;
  }
  EXPECT_TRUE(pusher.Push(run_key, sent.size(), "", true).complete());
  follower.join();
  EXPECT_TRUE(text.status.ok()) << text.status.error_message();
  EXPECT_EQ(text.data, sent);
  EXPECT_EQ(text.end, v1::LOG_END_COMPLETE);
}

TEST_F(LogsTest, BothOutputsComeInTheirOrderAndEachHasItsEnd) {
  pusher.Push(run_key, 0, "1\n");
  pusher.Push(run_key, 0, "2\n", false, v1::LOG_STREAM_STDERR);
  pusher.Push(run_key, 2, "3\n");
  const BothTexts now = ReadBoth(broker, BothLogs(job));
  EXPECT_EQ(now.data, "1\n2\n3\n");
  EXPECT_THAT(now.ends, UnorderedElementsAre(
                            Pair(v1::LOG_STREAM_STDOUT, ElementsAre(v1::LOG_END_MORE_LATER)),
                            Pair(v1::LOG_STREAM_STDERR, ElementsAre(v1::LOG_END_MORE_LATER))));
  BothTexts followed;
  std::thread follower([&] { followed = ReadBoth(broker, BothLogs(job, true)); });
  pusher.Push(run_key, 2, "4\n", true, v1::LOG_STREAM_STDERR);
  pusher.Push(run_key, 4, "5\n", true);
  follower.join();
  EXPECT_TRUE(followed.status.ok()) << followed.status.error_message();
  EXPECT_EQ(followed.data, "1\n2\n3\n4\n5\n");
  EXPECT_THAT(followed.ends,
              UnorderedElementsAre(Pair(v1::LOG_STREAM_STDOUT, ElementsAre(v1::LOG_END_COMPLETE)),
                                   Pair(v1::LOG_STREAM_STDERR, ElementsAre(v1::LOG_END_COMPLETE))));
}

TEST_F(LogsTest, AnUnfinishedLineKeepsTheOtherOutputBackForAMomentOnly) {
  pusher.Push(run_key, 0, "password: ");
  pusher.Push(run_key, 0, "no terminal\n", false, v1::LOG_STREAM_STDERR);
  auto context = Call();
  auto stream = broker.jobs().ReadLog(context.get(), BothLogs(job, true));
  v1::ReadLogResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.data(), "password: ");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.data(), "no terminal\n");
  context->TryCancel();
}

TEST_F(LogsTest, TheLastLinesBeginWithWhereEachOutputBegins) {
  pusher.Push(run_key, 0, "1\n2\n");
  pusher.Push(run_key, 0, "3\n", false, v1::LOG_STREAM_STDERR);
  pusher.Push(run_key, 4, "4\n");
  v1::ReadLogRequest request = BothLogs(job);
  request.set_tail_lines(2);
  const BothTexts last = ReadBoth(broker, request);
  EXPECT_EQ(last.data, "3\n4\n");
  EXPECT_THAT(last.begins,
              UnorderedElementsAre(Pair(v1::LOG_STREAM_STDOUT, 4), Pair(v1::LOG_STREAM_STDERR, 0)));
  request.set_stream(v1::LOG_STREAM_STDOUT);
  EXPECT_EQ(ReadBoth(broker, request).data, "2\n4\n");
  request.set_tail_lines(100'001);
  EXPECT_EQ(ReadBoth(broker, request).status.error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(LogsTest, PositionsMustBeOfTheStreamsAskedForAndWithinThem) {
  pusher.Push(run_key, 0, "hello\n");
  EXPECT_EQ(ReadAll(broker, Log(job, false, 6)).data, "");
  EXPECT_EQ(ReadAll(broker, Log(job, false, 7)).status.error_code(), grpc::OUT_OF_RANGE);
  v1::ReadLogRequest request = Log(job, false, 3);
  request.set_stream(v1::LOG_STREAM_STDERR);
  EXPECT_EQ(ReadAll(broker, request).status.error_code(), grpc::INVALID_ARGUMENT);
  request = Log(job, false, 3);
  *request.add_positions() = request.positions(0);
  EXPECT_EQ(ReadAll(broker, request).status.error_code(), grpc::INVALID_ARGUMENT);
  request = Log(job, false, 3);
  request.set_tail_lines(1);
  EXPECT_EQ(ReadAll(broker, request).status.error_code(), grpc::INVALID_ARGUMENT);
  pusher.Push(run_key, 6, "", true);
  EXPECT_EQ(ReadAll(broker, Log(job, true, 7)).status.error_code(), grpc::OUT_OF_RANGE);
}

TEST_F(LogsTest, AListOfLogsHasTheirSizesAndEnds) {
  pusher.Push(run_key, 0, "hello\n", true);
  pusher.Push(run_key, 0, "oops", false, v1::LOG_STREAM_STDERR);
  v1::ListLogsRequest request;
  request.set_job_id(job);
  v1::ListLogsResponse response;
  ASSERT_TRUE(broker.jobs().ListLogs(Call().get(), request, &response).ok());
  EXPECT_EQ(response.run(), 1u);
  ASSERT_EQ(response.logs_size(), 2);
  EXPECT_EQ(response.logs(0).stream(), v1::LOG_STREAM_STDOUT);
  EXPECT_EQ(response.logs(0).size_bytes(), 6u);
  EXPECT_EQ(response.logs(0).end(), v1::LOG_END_COMPLETE);
  EXPECT_EQ(response.logs(1).stream(), v1::LOG_STREAM_STDERR);
  EXPECT_EQ(response.logs(1).size_bytes(), 4u);
  EXPECT_EQ(response.logs(1).end(), v1::LOG_END_MORE_LATER);
  request.set_run(2);
  EXPECT_EQ(broker.jobs().ListLogs(Call().get(), request, &response).error_code(), grpc::NOT_FOUND);
}

TEST_F(LogsTest, AFollowerOfALogThatNeverBeganEndsWithTheRun) {
  LogText text;
  v1::ReadLogRequest request = Log(job, true);
  request.set_stream(v1::LOG_STREAM_STDERR);
  std::thread follower([&] { text = ReadAll(broker, request); });
  agent.Report(run_key, v1::RUN_STATE_SUCCEEDED);
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_SUCCEEDED, true));
  follower.join();
  EXPECT_EQ(text.data, "");
  EXPECT_EQ(text.end, v1::LOG_END_COMPLETE);
}

TEST_F(LogsTest, AFollowerGetsTheRestHoweverLongAgoTheNodeSaysTheRunEnded) {
  pusher.Push(run_key, 0, "first\n");
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_SUCCEEDED, false, absl::Hours(1)));
  auto context = Call();
  auto stream = broker.jobs().ReadLog(context.get(), Log(job, true));
  v1::ReadLogResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.data(), "first\n");
  EXPECT_EQ(response.end(), v1::LOG_END_UNSPECIFIED);
  pusher.Push(run_key, 6, "last\n", true);
  std::string rest;
  while (stream->Read(&response)) rest += response.data();
  EXPECT_EQ(rest, "last\n");
  EXPECT_EQ(response.end(), v1::LOG_END_COMPLETE);
}

class ShortGraceTest : public LogsTest {
 protected:
  ShortGraceTest()
      : LogsTest([](BrokerOptions& options) { options.log_grace = absl::Milliseconds(10); }) {}
};

TEST_F(ShortGraceTest, AFollowerIsToldAfterTheGraceThatTheRestDidNotCome) {
  pusher.Push(run_key, 0, "first\n");
  // The node's clock is ahead: what it says of the end has no part in this.
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_SUCCEEDED, false, -absl::Hours(1)));
  const LogText text = ReadAll(broker, Log(job, true));
  EXPECT_TRUE(text.status.ok()) << text.status.error_message();
  EXPECT_EQ(text.data, "first\n");
  EXPECT_EQ(text.end, v1::LOG_END_INCOMPLETE);
}

class ShortRetentionTest : public LogsTest {
 protected:
  ShortRetentionTest()
      : LogsTest([](BrokerOptions& options) {
          options.job_retention = absl::Nanoseconds(1);
          options.core.request_memory = absl::Nanoseconds(1);
        }) {}
};

TEST_F(ShortRetentionTest, TheLogsOfADeletedJobGoWithIt) {
  pusher.Push(run_key, 0, "hello\n", true);
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_SUCCEEDED, /*logs_complete=*/true));
  const auto logs = broker.directory() / "logs/0" / std::to_string(job);
  EXPECT_TRUE(std::filesystem::exists(logs));
  v1::GetJobRequest request;
  request.set_job_id(job);
  v1::GetJobResponse response;
  const absl::Time patience = absl::Now() + absl::Seconds(60);
  grpc::Status status;
  do {
    broker.broker().Housekeep();
    status = broker.jobs().GetJob(Call().get(), request, &response);
  } while (status.ok() && absl::Now() < patience);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_FALSE(std::filesystem::exists(logs));
}

TEST_F(LogsTest, AGapIsAnsweredWithWhereToGoOn) {
  pusher.Push(run_key, 0, "abc");
  const agent::v1::PushResponse answer = pusher.Push(run_key, 100, "xyz");
  EXPECT_EQ(answer.next_offset(), 3u);
  EXPECT_FALSE(answer.complete());
}

TEST_F(LogsTest, ARunThatIsNotThisClustersIsDiscarded) {
  for (const std::string key : {"k7m2-99-1", "zzzz-1-1", "nonsense"}) {
    const agent::v1::PushResponse answer = pusher.Push(key, 0, "abc", true);
    EXPECT_TRUE(answer.discarding()) << key;
    EXPECT_EQ(answer.next_offset(), 3u);
    EXPECT_TRUE(answer.complete());
  }
}

TEST_F(LogsTest, AFloodOfChunksIsTakenWithoutLoss) {
  const std::string chunk(64 << 10, 'x');
  constexpr int kChunks = 400;
  std::thread writer([&] {
    for (int i = 0; i < kChunks; ++i) pusher.Write(run_key, i * chunk.size(), chunk);
  });
  uint64_t next = 0;
  while (next < kChunks * chunk.size()) {
    const auto answer = pusher.Read();
    if (!answer) break;
    next = answer->next_offset();
  }
  writer.join();
  EXPECT_EQ(next, kChunks * chunk.size());
}

TEST_F(LogsTest, AChunkThatIsTooLargeEndsTheStream) {
  pusher.Write(run_key, 0, std::string((64 << 10) + 1, 'x'));
  EXPECT_EQ(pusher.Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(LogsTest, APusherMustBeTheAgentThatIsConnected) {
  FakePusher other(broker);
  other.Hello("another-journal");
  EXPECT_EQ(other.Finish().error_code(), grpc::FAILED_PRECONDITION);
  FakePusher old(broker);
  old.Hello("journal-1", 99);
  EXPECT_EQ(old.Finish().error_code(), grpc::FAILED_PRECONDITION);
  FakePusher silent(broker);
  silent.Write(run_key, 0, "abc");
  EXPECT_EQ(silent.Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(LogsTest, APusherWhoseAgentWasReplacedIsNoLongerObeyed) {
  pusher.Push(run_key, 0, "kept\n");
  agent.Finish();
  FakeAgent other(broker);
  other.journal_id = "journal-2";
  ASSERT_TRUE(other.Connect());
  // The old agent finds no files and thinks that the log is over.
  pusher.Write(run_key, 0, "", true);
  pusher.Write(run_key, 5, "", true);
  EXPECT_EQ(pusher.Finish().error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(ReadAll(broker, Log(job)).end, v1::LOG_END_MORE_LATER);

  FakePusher heir(broker);
  heir.Hello("journal-2");
  EXPECT_TRUE(heir.Push(run_key, 5, "more\n", true).complete());
  EXPECT_EQ(ReadAll(broker, Log(job)).data, "kept\nmore\n");
}

TEST_F(LogsTest, AnUnknownJobRunOrRankIsRefused) {
  EXPECT_EQ(ReadAll(broker, Log(99)).status.error_code(), grpc::NOT_FOUND);
  v1::ReadLogRequest request = Log(job);
  request.set_run(2);
  EXPECT_EQ(ReadAll(broker, request).status.error_code(), grpc::NOT_FOUND);
  request = Log(job);
  request.set_rank(1);
  EXPECT_EQ(ReadAll(broker, request).status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(ReadAll(broker, Log(0)).status.error_code(), grpc::INVALID_ARGUMENT);
}

TEST(ReadLog, AJobThatEndedWithoutARunHasAnEmptyLog) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  LogText text;
  std::thread follower([&] { text = ReadAll(broker, Log(id, true)); });
  v1::CancelJobsRequest cancel;
  cancel.add_job_ids(id);
  v1::CancelJobsResponse response;
  EXPECT_TRUE(broker.jobs().CancelJobs(Call().get(), cancel, &response).ok());
  follower.join();
  EXPECT_EQ(text.end, v1::LOG_END_COMPLETE);
}

TEST(ReadLog, AFollowerOfAQueuedJobWaitsForItsRun) {
  TestBroker broker;
  const uint64_t id = broker.Submit();
  EXPECT_EQ(ReadAll(broker, Log(id)).end, v1::LOG_END_MORE_LATER);
  LogText text;
  std::thread follower([&] { text = ReadAll(broker, Log(id, true)); });
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const std::string run_key = agent.ReadAssignments(1)[0].run_key();
  FakePusher pusher(broker);
  pusher.Hello();
  pusher.Push(run_key, 0, "at last\n", true);
  follower.join();
  EXPECT_EQ(text.data, "at last\n");
  EXPECT_EQ(text.end, v1::LOG_END_COMPLETE);
}

}  // namespace
}  // namespace muster::broker
