// The muster binary against a fake broker: logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
    for (const char* object :
         {"{\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":\"0\",\"data\":\"one\\n\"}\n",
          "{\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":\"4\",\"data\":\"two\"}\n",
          "{\"rank\":2,\"stream\":\"LOG_STREAM_STDERR\",\"offset\":\"0\",\"data\":\"bad\"}\n",
          "{\"rank\":2,\"stream\":\"LOG_STREAM_STDOUT\",\"offset\":\"7\",\"end\":\"LOG_END_"
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

}  // namespace
}  // namespace muster::cli
