// Tests the muster binary against a fake broker: the last lines of a job that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandTest, WhyEndsWithTheLastLinesThatTheProgramWrote) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  job_.mutable_exit()->set_code(3);
  job_.mutable_exit()->set_rank(1);
  job_.mutable_start_time()->set_seconds(1'772'366'400);
  job_.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  std::string out = "1\n2\n3\n4\n5\n" + std::string(500, 'x') + "y\nlast\x1b[0m\n\n";
  std::string err;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_EQ(request.run(), 1u);
    EXPECT_EQ(request.rank(), 1u);
    EXPECT_FALSE(request.follow());
    EXPECT_EQ(request.tail_lines(), 5u);
    EXPECT_EQ(request.stream(), v1::LOG_STREAM_UNSPECIFIED);
    write(client::Piece(0, ""));
    write(client::Piece(0, "", v1::LOG_END_UNSPECIFIED, v1::LOG_STREAM_STDERR));
    for (uint64_t at = 0; at < out.size(); at += 7) write(client::Piece(at, out.substr(at, 7)));
    write(client::Piece(0, err, v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    write(client::Piece(out.size(), "", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"why", "42"}).out, EndsWith("  Last lines\n    3\n    4\n    5\n    " +
                                               std::string(399, 'x') + "y\n    last\\x1b[0m\n"));
  out = "one\nunfinished";
  err = "oops";
  EXPECT_THAT(Run({"why", "42"}).out,
              EndsWith("  Last lines\n    one\n    unfinished\n    oops\n"));
  out = "";
  job_.mutable_failure()->add_quotes()->set_text("oops");
  EXPECT_THAT(Run({"why", "42"}).out, Not(HasSubstr("Last lines")));
  err = "before\noops";
  EXPECT_THAT(Run({"why", "42"}).out, EndsWith("  Last lines\n    before\n    oops\n"));
  out = err = "";
  EXPECT_THAT(Run({"why", "42"}).out, Not(HasSubstr("Last lines")));
}

TEST_F(CommandTest, WhyHasTheLastLinesOfASetupThatFailed) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  job_.clear_exit();
  job_.clear_start_time();
  job_.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CONFIG);
  job_.mutable_failure()->set_message("rank 1 on gpu1: setup ended with exit code 9");
  job_.mutable_failure()->set_phase(v1::FAILURE_PHASE_SETUP);
  job_.mutable_failure()->set_rank(1);
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_EQ(request.rank(), 1u);
    write(client::Piece(0, ""));
    write(client::Piece(0, "", v1::LOG_END_UNSPECIFIED, v1::LOG_STREAM_STDERR));
    write(client::Piece(0, "no such package\n", v1::LOG_END_COMPLETE));
    return absl::OkStatus();
  };
  const std::string page = Run({"why", "42"}).out;
  EXPECT_THAT(page, HasSubstr("muster logs --rank 1 42.1\n"));
  EXPECT_THAT(page, EndsWith("  Last lines\n    no such package\n"));
  job_.mutable_failure()->set_phase(v1::FAILURE_PHASE_SETUP_START);
  EXPECT_THAT(Run({"why", "42"}).out, Not(HasSubstr("Last lines")));
}

}  // namespace
}  // namespace muster::cli
