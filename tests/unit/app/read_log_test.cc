#include "broker/app/read_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/app/run_logs.h"
#include "contract/errors.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

class ReadLogTest : public AppTest {
 protected:
  void SetUp() override {
    AppTest::SetUp();
    SubmitJobs(1);
  }

  void StartRun() {
    core::PutRun run;
    run.job = 1;
    run.run.set_number(1);
    run.run.set_state(v1::RUN_STATE_RUNNING);
    ASSERT_TRUE(store_.Commit({run}).ok());
  }

  void Print(v1::LogStream stream, uint64_t offset, const std::string& text, bool end = false) {
    const auto taken = archive_->Append({1, 1, 0, stream}, offset, text, end);
    ASSERT_TRUE(taken.ok()) << taken.status();
  }

  std::unique_ptr<LogSource> Open(const v1::ReadLogRequest& request) {
    auto source = ReadLog(alice_, services_, request);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  static v1::ReadLogRequest OfJob(uint64_t job, bool follow = false) {
    v1::ReadLogRequest request;
    request.set_job_id(job);
    request.set_follow(follow);
    return request;
  }

  static std::string TextOf(const LogSource::Pulled& pulled, v1::LogStream stream) {
    std::string text;
    for (const v1::ReadLogResponse& message : pulled.messages) {
      if (message.stream() == stream) text += message.data();
    }
    return text;
  }
};

TEST_F(ReadLogTest, BothOutputsComeWithTheirEnds) {
  StartRun();
  Print(v1::LOG_STREAM_STDOUT, 0, "out\n");
  Print(v1::LOG_STREAM_STDERR, 0, "err\n", /*end=*/true);
  const auto pulled = PullAll(*Open(OfJob(1)));
  EXPECT_EQ(TextOf(pulled, v1::LOG_STREAM_STDOUT), "out\n");
  EXPECT_EQ(TextOf(pulled, v1::LOG_STREAM_STDERR), "err\n");
  ASSERT_TRUE(pulled.final_status.has_value());
  EXPECT_TRUE(pulled.final_status->ok()) << *pulled.final_status;
  std::map<v1::LogStream, v1::LogEnd> ends;
  for (const auto& message : pulled.messages) {
    if (message.end() != v1::LOG_END_UNSPECIFIED) ends[message.stream()] = message.end();
  }
  EXPECT_EQ(ends[v1::LOG_STREAM_STDOUT], v1::LOG_END_MORE_LATER);
  EXPECT_EQ(ends[v1::LOG_STREAM_STDERR], v1::LOG_END_COMPLETE);
}

TEST_F(ReadLogTest, AFollowerIsWokenByNewBytes) {
  StartRun();
  Print(v1::LOG_STREAM_STDOUT, 0, "one\n");
  const auto stream = std::make_shared<FakeStream>();
  v1::ReadLogRequest request = OfJob(1, /*follow=*/true);
  request.set_stream(v1::LOG_STREAM_STDOUT);
  const auto source = Open(request);
  source->Hook(stream);
  EXPECT_EQ(TextOf(PullAll(*source), v1::LOG_STREAM_STDOUT), "one\n");
  Print(v1::LOG_STREAM_STDOUT, 4, "two\n", /*end=*/true);
  stream->AwaitWake();
  const auto rest = PullAll(*source);
  EXPECT_EQ(TextOf(rest, v1::LOG_STREAM_STDOUT), "two\n");
  ASSERT_TRUE(rest.final_status.has_value());
  EXPECT_TRUE(rest.final_status->ok());
  source->Unhook();
  EXPECT_EQ(archive_->usage().followers, 0u);
}

TEST_F(ReadLogTest, AJobWithoutARunHasAnEmptyLog) {
  const auto pulled = PullAll(*Open(OfJob(1)));
  ASSERT_EQ(pulled.messages.size(), 2u);
  EXPECT_EQ(pulled.messages[0].end(), v1::LOG_END_MORE_LATER);
  EXPECT_TRUE(pulled.final_status->ok());
}

TEST_F(ReadLogTest, AJobThatIsNotThereEndsTheStream) {
  const auto pulled = PullAll(*Open(OfJob(7)));
  ASSERT_TRUE(pulled.final_status.has_value());
  EXPECT_EQ(contract::GetErrorInfo(*pulled.final_status)->reason(), "UNKNOWN_JOB");
}

TEST_F(ReadLogTest, ABadRequestAndAStrangerAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ReadLog(alice_, services_, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ReadLog(stranger_, services_, OfJob(1)).status()));
}

TEST_F(ReadLogTest, LogsAreListedWithTheirSizes) {
  StartRun();
  Print(v1::LOG_STREAM_STDOUT, 0, "out\n");
  v1::ListLogsRequest request;
  request.set_job_id(1);
  const auto listed = ListLogs(alice_, services_, request);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->logs_size(), 1);
  EXPECT_EQ(listed->logs(0).size_bytes(), 4u);
  EXPECT_EQ(listed->logs(0).end(), v1::LOG_END_MORE_LATER);
  EXPECT_TRUE(absl::IsPermissionDenied(ListLogs(stranger_, services_, request).status()));
  request.set_job_id(7);
  EXPECT_TRUE(absl::IsNotFound(ListLogs(alice_, services_, request).status()));
}

}  // namespace
}  // namespace muster::broker
