// Tests LocalHost::Run against real programs.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/time/clock.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/spawn.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::hosts {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

class RunTest : public ::testing::Test {
 protected:
  absl::StatusOr<CommandResult> Sh(const std::string& script) {
    return host_.Run({.argv = {"sh", "-c", script}});
  }
  LocalHost host_;
  TempDir dir_;
};

TEST_F(RunTest, OutputsAndExitCodeComeBack) {
  const auto result = Sh("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->signal, 0);
  EXPECT_EQ(result->stdout_data, "out\n");
  EXPECT_EQ(result->stderr_data, "err\n");
  EXPECT_FALSE(result->ok());
}

TEST_F(RunTest, ASignalIsNotAnExitCode) {
  const auto result = Sh("kill -SEGV $$");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_EQ(result->exit_code, 0);
}

TEST_F(RunTest, SignalsThatAreToBeBlockedAreBlockedBeforeTheProgramBegins) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  const Fd null(open("/dev/null", O_RDWR));
  const auto child = Spawn({.argv = {"grep", "SigBlk", "/proc/self/status"},
                            .stdin_fd = null.get(),
                            .stdout_fd = writing.get(),
                            .stderr_fd = null.get(),
                            .blocked_signals = {SIGHUP, SIGTERM}});
  ASSERT_TRUE(child.ok()) << child.status();
  writing.Close();
  char text[64] = {};
  ASSERT_GT(read(reading.get(), text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "SigBlk:\t0000000000004001\n");
  EXPECT_EQ(waitpid(child->pid, nullptr, 0), child->pid);
}

TEST_F(RunTest, NoShellReadsTheArguments) {
  const std::string odd = "a b'\"$(id)`id`\n*;&|\\ \xc3\xa9";
  const auto result = host_.Run({.argv = {"printf", "%s", odd}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, odd);
}

TEST_F(RunTest, MegabytesOfInputAndOutputPassBothWaysAtOnce) {
  std::string data;
  for (int i = 0; data.size() < (5 << 20); ++i) data += std::to_string(i) + "\n";
  const auto result = host_.Run({.argv = {"cat"}, .stdin_data = data});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stdout_data == data);
}

TEST_F(RunTest, AProgramThatIgnoresItsInputDoesNoHarm) {
  const auto result = host_.Run({.argv = {"true"}, .stdin_data = std::string(1 << 20, 'x')});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok());
}

TEST_F(RunTest, VariablesAreAddedReplacedAndRemoved) {
  setenv("MUSTER_TEST_OLD", "old", 1);
  setenv("MUSTER_TEST_GONE_1", "there", 1);
  const auto result =
      host_.Run({.argv = {"sh", "-c", "echo \"$MUSTER_TEST_OLD ${MUSTER_TEST_GONE_1-gone} $NEW\""},
                 .env = {{"MUSTER_TEST_OLD", "replaced"}, {"NEW", "a=b"}},
                 .unset_env = {"MUSTER_TEST_GONE_*"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, "replaced gone a=b\n");
}

TEST_F(RunTest, TheProgramStartsInItsWorkingDirectory) {
  const auto result = host_.Run({.argv = {"pwd", "-P"}, .working_directory = dir_.path()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, std::filesystem::canonical(dir_.path()).string() + "\n");
}

TEST_F(RunTest, AMissingProgramIsNamedAndWasNotStarted) {
  const absl::Status status = host_.Run({.argv = {"/no/such/program"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("/no/such/program\": No such file or directory"));
  EXPECT_TRUE(NotStarted(status));
}

TEST_F(RunTest, AMissingWorkingDirectoryIsNamedRatherThanTheProgram) {
  const absl::Status status =
      host_.Run({.argv = {"true"}, .working_directory = dir_ / "gone"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "gone"));
}

TEST_F(RunTest, AProgramThatMayNotBeExecutedIsPermissionDenied) {
  ASSERT_TRUE(host_.WriteFile(dir_ / "plain", "#!/bin/sh\n", {.mode = 0644}).ok());
  const absl::Status status = host_.Run({.argv = {dir_ / "plain"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "plain"));
}

TEST_F(RunTest, BadRequestsAreRefused) {
  using std::string_literals::operator""s;
  EXPECT_TRUE(absl::IsInvalidArgument(host_.Run({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(host_.Run({.argv = {"echo", "a\0b"s}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(host_.Run({.argv = {"true"}, .env = {{"A=B", ""}}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      host_.Run({.argv = {"true"}, .timeout = absl::ZeroDuration()}).status()));
}

TEST_F(RunTest, ATimeOutKillsTheWholeProcessGroup) {
  // Both processes hold a named pipe open for writing; it reads as ended once both are dead.
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const absl::Status status =
      host_
          .Run({.argv = {"sh", "-c", "exec 3>\"$0\"; trap '' TERM; sleep 1000 & sleep 1000", fifo},
                .timeout = absl::Milliseconds(300)})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(status), HasSubstr("300ms"));
  EXPECT_FALSE(NotStarted(status));
  ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
  char byte = 0;
  EXPECT_EQ(read(reader, &byte, 1), 0);
  close(reader);
}

TEST_F(RunTest, OutputOverTheLimitIsAnErrorThatNamesTheLimit) {
  const absl::Status status = host_.Run({.argv = {"yes"}, .max_stdout_bytes = 100'000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("100000 bytes to its stdout"));
  EXPECT_TRUE(host_.Run({.argv = {"printf", "12345"}, .max_stdout_bytes = 5}).ok());
  EXPECT_FALSE(host_.Run({.argv = {"printf", "123456"}, .max_stdout_bytes = 5}).ok());
}

TEST_F(RunTest, AProcessLeftBehindIsNotWaitedFor) {
  const auto result = Sh("sleep 1000 & echo $!");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(kill(std::stoi(result->stdout_data), SIGKILL), 0);
}

TEST_F(RunTest, NoDescriptorLeaksIntoTheProgram) {
  const int leaky = open("/dev/null", O_RDONLY);  // no O_CLOEXEC
  const auto result = Sh("ls /proc/$$/fd");
  close(leaky);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, "0\n1\n2\n");
}

TEST_F(RunTest, NoDescriptorLeaksHere) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = count();
  ASSERT_TRUE(Sh("true").ok());
  ASSERT_FALSE(host_.Run({.argv = {"/no/such/program"}}).ok());
  EXPECT_EQ(count(), before);
}

TEST_F(RunTest, IgnoredSignalsAreNotInherited) {
  signal(SIGPIPE, SIG_IGN);
  const auto result = Sh("kill -PIPE $$");
  signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->signal, SIGPIPE);
}

TEST_F(RunTest, ManyThreadsRunAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string text = std::to_string(t * 100 + i);
        const auto result = host_.Run({.argv = {"cat"}, .stdin_data = text});
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(result->stdout_data, text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::hosts
