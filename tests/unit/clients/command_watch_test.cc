// The muster binary against a fake broker: logs of several jobs, and lists that go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "clients/cli/progress_line.h"
#include "clients/cli/screen.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::Piece;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ManyLogsTest : public CommandTest {
 protected:
  ManyLogsTest() {
    job_.mutable_spec()->set_nodes(2);
    broker_.read_log = [](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
      const std::string text = std::to_string(request.job_id()) + " says " +
                               std::to_string(request.rank()) + "\nand more\n";
      write(Piece(0, text));
      write(Piece(text.size(), "", v1::LOG_END_COMPLETE));
      write(Piece(0, "", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
      return absl::OkStatus();
    };
  }
};

TEST_F(ManyLogsTest, LinesOfSeveralJobsBeginWithTheJob) {
  EXPECT_EQ(Run({"logs", "42", "43"}).out,
            "[42] 42 says 0\n[42] and more\n[43] 43 says 0\n[43] and more\n");
  EXPECT_EQ(Run({"logs", "--no-prefix", "42", "43"}).out,
            "42 says 0\nand more\n43 says 0\nand more\n");
  EXPECT_EQ(Run({"logs", "42"}).out, "42 says 0\nand more\n") << "one log is itself";
}

TEST_F(ManyLogsTest, AllRanksOfAJob) {
  EXPECT_EQ(Run({"logs", "--all-ranks", "42"}).out,
            "[42 rank 0] 42 says 0\n[42 rank 0] and more\n[42 rank 1] 42 says 1\n[42 rank 1] and "
            "more\n");
}

TEST_F(ManyLogsTest, TheJobsOfAFilterTheOldestFirst) {
  v1::ListJobsRequest asked;
  std::atomic<int> jobs = 2;
  broker_.list_jobs =
      [&](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
    asked = request;
    v1::ListJobsResponse page;
    for (int id = 1; id <= jobs; ++id) page.add_jobs()->set_id(static_cast<uint64_t>(id));
    return page;
  };
  EXPECT_THAT(Run({"logs", "--filter", "name = a"}).out, StartsWith("[1] 1 says 0\n"));
  EXPECT_EQ(asked.filter(), "name = a");
  EXPECT_EQ(asked.order_by(), "id");
  jobs = 1001;
  const Outcome many = Run({"logs", "--filter", "name = a"});
  EXPECT_EQ(many.code, 1);
  EXPECT_THAT(many.err, HasSubstr("it takes more than 1000 jobs; narrow the filter"));
  jobs = 101;
  const Outcome followed = Run({"logs", "-f", "--filter", "name = a"});
  EXPECT_EQ(followed.code, 2);
  EXPECT_THAT(followed.err, HasSubstr("101 logs are more than the 100"));
}

TEST_F(ManyLogsTest, FollowsThemSideBySide) {
  job_ = client::JobInState(42, v1::JOB_STATE_RUNNING);
  std::atomic<bool> has_second = false;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    EXPECT_TRUE(request.follow());
    const std::string text = std::to_string(request.job_id()) + "\n";
    write(Piece(0, text));
    if (request.job_id() == 43) has_second = true;
    // The first log ends only after the second has come.
    while (!has_second) std::this_thread::yield();
    write(Piece(text.size(), "", v1::LOG_END_COMPLETE));
    write(Piece(0, "", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  broker_.watch_jobs = [](const v1::WatchJobsRequest& request, const auto& write) {
    for (uint64_t id : request.job_ids()) write(client::Step(id, 3, v1::JOB_STATE_SUCCEEDED));
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"logs", "-f", "42", "43"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("[42] 42\n"), HasSubstr("[43] 43\n")));
}

TEST_F(ManyLogsTest, ObjectsOfSeveralLogsNameTheJob) {
  EXPECT_THAT(Run({"logs", "-o", "json", "42", "43"}).out,
              HasSubstr("{\"job\":\"43\",\"run\":1,\"rank\":0,\"stream\":\"LOG_STREAM_STDOUT\","
                        "\"offset\":\"0\",\"data\":\"43 says 0\\n\"}\n"));
  EXPECT_THAT(Run({"logs", "-o", "json", "42"}).out, Not(HasSubstr("\"job\"")));
}

class WatchListTest : public CommandTest {
 protected:
  WatchListTest() {
    broker_.list_jobs = [this](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
      v1::ListJobsResponse page;
      *page.add_jobs() =
          client::JobInState(42, ++asked_ > 1 ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_RUNNING);
      return page;
    };
    broker_.watch_jobs = [this](const v1::WatchJobsRequest& request, const auto& write) {
      filter_ = request.filter();
      write(client::Heartbeat());
      write(client::Step(42, 3, v1::JOB_STATE_RUNNING));
      write(client::Step(42, 4, v1::JOB_STATE_SUCCEEDED));
      write(client::Step(7, 5, v1::JOB_STATE_RUNNING));
      while (!stop_) std::this_thread::yield();
      return absl::OkStatus();
    };
  }

  std::string filter_;
  std::atomic<int> asked_ = 0;
};

TEST_F(WatchListTest, InAPipeJobsThatChangeFollowTheList) {
  Command command(broker_.address(), {"list", "--watch", "-o", "template={{.id}} {{.state}}",
                                      "--state", "running,succeeded"});
  command.AwaitOut("7 RUNNING\n");
  command.Signal(SIGINT);
  stop_ = true;
  EXPECT_EQ(command.Finish().out, "42 RUNNING\n42 SUCCEEDED\n7 RUNNING\n")
      << "what the list had already is not told again";
  EXPECT_EQ(filter_, "(state = \"RUNNING\" OR state = \"SUCCEEDED\")");
}

TEST_F(WatchListTest, OnATerminalTheListIsShownAnew) {
  Command command(broker_.address(), {"list", "-w"}, /*on_terminal=*/true);
  command.AwaitOut("SUCCEEDED");
  command.Signal(SIGINT);
  stop_ = true;
  const std::string out = command.Finish().out;
  EXPECT_THAT(out, StartsWith("\x1b[2J\x1b[H"));
  EXPECT_LT(out.find("RUNNING"), out.find("\x1b[J\x1b[H"));
}

TEST(ScreenTest, APictureIsNotHigherThanTheTerminal) {
  EXPECT_EQ(Picture("a\nb\nc\n", 3, true), "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
  EXPECT_EQ(Picture("a\n", 0, false), "\x1b[Ha\x1b[K\n\x1b[J");
}

TEST(ProgressTest, SaysHowMuchAndHowLong) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(ProgressText("uploading", 50 * kMiB, 200 * kMiB, absl::Seconds(10)),
            "uploading: 25%, 5.0MiB/s, 31s left");
  EXPECT_EQ(ProgressText("copying", 1536, 0, absl::Seconds(1)), "copying: 1.5KiB, 1.5KiB/s");
  EXPECT_EQ(ProgressText("uploading", 0, kMiB, absl::Seconds(2)), "uploading: 0%, 0B/s");
  EXPECT_EQ(ProgressText("uploading", kMiB, kMiB, absl::Seconds(1)), "uploading: 100%, 1.0MiB/s");
}

TEST_F(CommandTest, TopIsForPeople) {
  const Outcome outcome = Run({"top", "-o", "json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("top is for people"));
}

}  // namespace
}  // namespace muster::cli
