// Tests the muster binary against a fake broker: logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::Piece;
using ::testing::HasSubstr;

TEST_F(CommandTest, LogsAreExactInAPipeAndHarmlessOnATerminal) {
  const std::string log = "a\x1b]0;x\x07\xff\xe6\x97\xa5\n";
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    const uint64_t begin = request.positions().empty() ? 0 : request.positions(0).offset();
    for (uint64_t at = begin; at < log.size(); ++at) write(Piece(at, log.substr(at, 1)));
    write(Piece(log.size(), "", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"logs", "42"}).out, log);
  EXPECT_EQ(Run({"logs", "42", "--stdout", "--since-offset", "7"}).out, log.substr(7));
  EXPECT_EQ(Run({"logs", "42", "--since-offset", "7"}).code, 2) << "of which of the two?";
  EXPECT_EQ(RunOnTerminal(broker_.address(), {"logs", "42"}).out, "a\\x1b]0;x\\x07\\xff日\r\n");
  EXPECT_THAT(RunOnTerminal(broker_.address(), {"logs", "--raw", "42"}).out,
              HasSubstr("\x1b]0;x\x07"));
}

TEST_F(CommandTest, LogsAsJsonAreAnObjectForEachLineAndOneForTheEnd) {
  broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_EQ(request.stream(), v1::LOG_STREAM_UNSPECIFIED);
    write(Piece(0, "one\ntw"));
    write(Piece(0, "bad", v1::LOG_END_UNSPECIFIED, v1::LOG_STREAM_STDERR));
    write(Piece(6, "o"));
    write(Piece(7, "", v1::LOG_END_COMPLETE));
    write(Piece(3, "", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  for (const char* form : {"json", "jsonl"}) {
    const Outcome outcome = Run({"logs", "-o", form, "--rank", "2", "42"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* object : {"{\"run\":1,\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":"
                               "\"0\",\"data\":\"one\\n\"}\n",
                               "{\"run\":1,\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":"
                               "\"4\",\"data\":\"two\"}\n",
                               "{\"run\":1,\"rank\":2,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":"
                               "\"0\",\"data\":\"bad\"}\n",
                               "{\"run\":1,\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":"
                               "\"7\",\"end\":\"LOG_END_"
                               "COMPLETE\"}\n"}) {
      EXPECT_THAT(outcome.out, HasSubstr(object));
    }
  }
  const Outcome odd = Run({"logs", "-o", "yaml", "42"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, HasSubstr("logs has no -o yaml"));
}

TEST_F(CommandTest, LogsAskForTheRunRankAndStreamThatWereNamed) {
  v1::ReadLogRequest seen;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    seen = request;
    write(Piece(0, "", v1::LOG_END_TRUNCATED, request.stream()));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"logs", "42.3", "--rank", "2", "--stderr", "-f"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("more bytes than the broker keeps"));
  EXPECT_EQ(seen.run(), 3u);
  EXPECT_EQ(seen.rank(), 2u);
  EXPECT_EQ(seen.stream(), v1::LOG_STREAM_STDERR);
  EXPECT_TRUE(seen.follow());
  Run({"logs", "42", "--run", "2", "--tail", "5"});
  EXPECT_EQ(seen.run(), 2u);
  EXPECT_EQ(seen.stream(), v1::LOG_STREAM_UNSPECIFIED);
  EXPECT_EQ(seen.tail_lines(), 5u);
  Run({"logs", "42", "--stdout"});
  EXPECT_EQ(seen.stream(), v1::LOG_STREAM_STDOUT);
  EXPECT_EQ(Run({"logs", "42", "--stdout", "--stderr"}).code, 2);
}

TEST_F(CommandTest, LogsShowBothOutputsEachWhereItBelongsOrOneOfThem) {
  broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    if (request.stream() != v1::LOG_STREAM_STDERR) {
      write(Piece(0, "out\n", v1::LOG_END_COMPLETE));
    }
    if (request.stream() != v1::LOG_STREAM_STDOUT) {
      write(Piece(0, "Traceback\n", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    }
    return absl::OkStatus();
  };
  const Outcome both = Run({"logs", "42"});
  EXPECT_EQ(both.out, "out\n");
  EXPECT_EQ(both.err, "Traceback\n");
  EXPECT_EQ(Run({"logs", "--stdout", "42"}).err, "");
  const Outcome error = Run({"logs", "--stderr", "42"});
  EXPECT_EQ(error.out, "Traceback\n");
  EXPECT_EQ(error.err, "");
}

TEST_F(CommandTest, ALogOfStandardErrorAloneIsNotEmpty) {
  broker_.read_log = [](const auto&, const auto& write) -> absl::Status {
    write(Piece(0, "", v1::LOG_END_COMPLETE));
    write(Piece(0, "oops\n", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"logs", "42"}).err, "oops\n");
}

TEST_F(CommandTest, ALogThatIsNotCompleteIsAnErrorOfLogsButNotOfTheJob) {
  broker_.read_log = [](const auto&, const auto& write) -> absl::Status {
    write(Piece(0, "start\n"));
    write(Piece(6, "", v1::LOG_END_INCOMPLETE));
    return absl::OkStatus();
  };
  const Outcome logs = Run({"logs", "-q", "42"});
  EXPECT_EQ(logs.code, 1);
  EXPECT_EQ(logs.out, "start\n");
  EXPECT_THAT(logs.err, HasSubstr("is not complete"));
  const Outcome waited = Run({"run", "--wait", "--", "x"});
  EXPECT_EQ(waited.code, 0);
  EXPECT_THAT(waited.err, HasSubstr("is not complete"));
}

TEST_F(CommandTest, LogsOfARunThatHasEndedAskForAllThatIsStillOnItsWay) {
  bool follows = false;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    follows = request.follow();
    write(Piece(0, "", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  job_.mutable_runs(0)->set_state(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Run({"logs", "42"}).code, 0);
  EXPECT_TRUE(follows);
  EXPECT_EQ(Run({"logs", "42.1"}).code, 0);
  EXPECT_TRUE(follows);
  job_.mutable_runs(0)->set_logs_complete(true);
  EXPECT_EQ(Run({"logs", "42"}).code, 0);
  EXPECT_FALSE(follows);
}

// A job whose first run is over and that gets a second one.
class RetryLogsTest : public CommandTest {
 protected:
  RetryLogsTest() {
    job_ = client::JobInState(42, v1::JOB_STATE_QUEUED);
    job_.mutable_runs(0)->set_state(v1::RUN_STATE_FAILED);
    broker_.watch_jobs = [](const v1::WatchJobsRequest& request, const auto& write) {
      EXPECT_TRUE(request.until_terminal());
      write(client::Step(42, 1, v1::JOB_STATE_RUNNING, 1));
      write(client::Step(42, 2, v1::JOB_STATE_QUEUED, 1));
      write(client::Step(42, 3, v1::JOB_STATE_QUEUED, 0));
      write(client::Step(42, 4, v1::JOB_STATE_RUNNING, 2));
      write(client::Step(42, 5, v1::JOB_STATE_SUCCEEDED, 2));
      return absl::OkStatus();
    };
    broker_.read_log = [this](const v1::ReadLogRequest& request, const auto& write) {
      const std::lock_guard<std::mutex> lock(mutex_);
      asked_.push_back(request);
      write(Piece(0, "of run " + std::to_string(request.run()) + "\n", v1::LOG_END_COMPLETE));
      return absl::OkStatus();
    };
  }

  std::vector<v1::ReadLogRequest> asked_;
};

TEST_F(RetryLogsTest, WhoFollowsAJobSeesTheLogsOfAllItsRuns) {
  const Outcome outcome = Run({"logs", "-f", "--tail", "5", "42"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "of run 1\nof run 2\n");
  EXPECT_THAT(outcome.err, HasSubstr("muster: run 42.1 has ended; the log of run 42.2 follows\n"));
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].tail_lines(), 5u);
  EXPECT_EQ(asked_[1].tail_lines(), 0u) << "a new run is wanted from its beginning";
  EXPECT_TRUE(asked_[1].follow());
  EXPECT_THAT(Run({"logs", "-f", "-o", "json", "42"}).out,
              HasSubstr("{\"run\":2,\"rank\":0,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":\"0\","
                        "\"data\":\"of run 2\\n\"}\n"));
}

TEST_F(RetryLogsTest, WhoNamesARunFollowsThatOneOnly) {
  EXPECT_EQ(Run({"logs", "-f", "--run", "1", "42"}).out, "of run 1\n");
  EXPECT_EQ(Run({"logs", "-f", "42.1"}).out, "of run 1\n");
  EXPECT_EQ(Run({"logs", "42"}).out, "of run 1\n") << "who does not follow waits for nothing";
}

TEST_F(RetryLogsTest, ARunWhoseLogIsNotCompleteIsAnErrorAlsoIfAnotherFollows) {
  broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) {
    const bool is_first = request.run() == 1;
    write(Piece(0, "x\n"));
    write(Piece(2, "", is_first ? v1::LOG_END_INCOMPLETE : v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"logs", "-f", "42"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "x\nx\n");
}

}  // namespace
}  // namespace muster::cli
