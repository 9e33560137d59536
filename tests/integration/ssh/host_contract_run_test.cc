// Tests Host::Run, on every way to a host.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "agents/hosts/local_host.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/ssh/host_contract.h"

namespace muster::hosts {
namespace {

using ::testing::HasSubstr;

TEST_P(HostContractTest, OutputsAndExitCodeComeBack) {
  const auto result = Sh("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->signal, 0);
  EXPECT_EQ(result->stdout_data, "out\n");
  EXPECT_EQ(result->stderr_data, "err\n");
  EXPECT_FALSE(result->ok());
}

TEST_P(HostContractTest, EveryExitCodeIsItself) {
  for (const int code : {0, 1, 126, 127, 128, 137, 255}) {
    const auto result = Sh(fmt::format("exit {}", code));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, code);
    EXPECT_EQ(result->signal, 0);
  }
}

TEST_P(HostContractTest, ASignalIsNotAnExitCode) {
  for (const int signal : {SIGSEGV, SIGTERM, SIGKILL, SIGPIPE}) {
    const auto result = Sh(fmt::format("kill -{} $$", signal));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->signal, signal);
    EXPECT_EQ(result->exit_code, 0);
  }
}

TEST_P(HostContractTest, MegabytesOfInputAndOutputPassBothWaysAtOnce) {
  std::string data;
  for (int i = 0; data.size() < (8 << 20); ++i) data += std::to_string(i) + "\n";
  const auto result = host_->Run(
      {.argv = {"tee", "/dev/fd/2"}, .stdin_data = data, .max_stderr_bytes = size_t{16} << 20});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stdout_data == data);
}

TEST_P(HostContractTest, OutputComesBackWholeWhateverBytesItHas) {
  std::string data;
  for (int i = 0; i < (1 << 20); ++i) data += static_cast<char>(i * 7 + i / 256);
  const auto result = host_->Run({.argv = {"cat"}, .stdin_data = data});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stdout_data == data);
}

TEST_P(HostContractTest, AProgramThatIgnoresItsInputDoesNoHarm) {
  const auto result = host_->Run({.argv = {"true"}, .stdin_data = std::string(8 << 20, 'x')});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok());
}

TEST_P(HostContractTest, ArgumentsOf64KiBArriveWhole) {
  std::string text;
  for (int i = 0; text.size() < (64 << 10); ++i) text += fmt::format("'{}\"\n", i);
  const auto result = host_->Run({.argv = {"printf", "%s|%s", text, text}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stdout_data == text + "|" + text);
}

TEST_P(HostContractTest, AnArgumentThatNoKernelTakesIsInvalid) {
  const absl::Status status = host_->Run({.argv = {"true", std::string(200'000, 'x')}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(Message(status), HasSubstr("Argument list too long"));
}

TEST_P(HostContractTest, VariablesAreAddedReplacedAndRemoved) {
  const auto result = host_->Run(
      {.argv = {"/bin/sh", "-c", "echo \"${HOME-gone} ${PATH:+here} ${USER-gone} $NEW\""},
       .env = {{"HOME", "replaced"}, {"NEW", "a=b 'c'\n$(id)"}},
       .unset_env = {"USE*", "NOT_THERE"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, "replaced here gone a=b 'c'\n$(id)\n");
}

TEST_P(HostContractTest, AClearedEnvironmentHasNothingElse) {
  const auto result =
      host_->Run({.argv = {"env"}, .env = {{"A", "1"}, {"PATH", "/nowhere"}}, .unset_env = {"*"}});
  ASSERT_TRUE(result.ok()) << result.status();
  std::string rest = result->stdout_data;
  // bash, where it is /bin/sh, adds these whatever it is told.
  for (const std::string own : {"_=", "SHLVL="}) {
    const size_t begin = rest.starts_with(own) ? 0 : rest.find("\n" + own) + 1;
    if (rest.compare(begin, own.size(), own) == 0) {
      rest.erase(begin, rest.find('\n', begin) + 1 - begin);
    }
  }
  EXPECT_THAT(rest, testing::AnyOf("A=1\nPATH=/nowhere\n", "PATH=/nowhere\nA=1\n"));
}

TEST_P(HostContractTest, TheProgramStartsInItsWorkingDirectory) {
  const auto result = host_->Run({.argv = {"pwd", "-P"}, .working_directory = dir_.path()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stdout_data, std::filesystem::canonical(dir_.path()).string() + "\n");
}

TEST_P(HostContractTest, AMissingProgramIsNamedAndWasNotStarted) {
  for (const std::string program : {"/no/such/program", "no-such-program"}) {
    const absl::Status status = host_->Run({.argv = {program}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(Message(status), HasSubstr(program + "\": No such file or directory"));
    EXPECT_TRUE(NotStarted(status));
  }
}

TEST_P(HostContractTest, AProgramWhoseInterpreterIsMissingWasNotStarted) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "f", "#!/no/such/interpreter\n", {.mode = 0755}).ok());
  const absl::Status status = host_->Run({.argv = {dir_ / "f"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
}

TEST_P(HostContractTest, AMissingWorkingDirectoryIsNamedRatherThanTheProgram) {
  const absl::Status status =
      host_->Run({.argv = {"true"}, .working_directory = dir_ / "gone"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "gone"));
  ASSERT_TRUE(host_->WriteFile(dir_ / "file", "", {}).ok());
  const absl::Status file =
      host_->Run({.argv = {"true"}, .working_directory = dir_ / "file"}).status();
  EXPECT_EQ(file.code(), absl::StatusCode::kFailedPrecondition) << file;
}

TEST_P(HostContractTest, AProgramThatMayNotBeExecutedIsPermissionDenied) {
  ASSERT_TRUE(host_->WriteFile(dir_ / "plain", "#!/bin/sh\n", {.mode = 0644}).ok());
  const absl::Status status = host_->Run({.argv = {dir_ / "plain"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(Message(status), HasSubstr(dir_ / "plain"));
}

TEST_P(HostContractTest, BadRequestsAreRefused) {
  using std::string_literals::operator""s;
  EXPECT_TRUE(absl::IsInvalidArgument(host_->Run({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(host_->Run({.argv = {"echo", "a\0b"s}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(host_->Run({.argv = {"true"}, .env = {{"A=B", ""}}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(host_->Run({.argv = {"true"}, .env = {{"A;id", ""}}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(host_->Run({.argv = {"true"}, .unset_env = {"$(id)"}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      host_->Run({.argv = {"true"}, .timeout = absl::ZeroDuration()}).status()));
}

TEST_P(HostContractTest, ATimeOutKillsTheWholeProcessGroup) {
  // Both processes hold a named pipe open for writing; it reads as ended once both are dead.
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const absl::Status status =
      host_
          ->Run({.argv = {"sh", "-c", "exec 3>\"$0\"; trap '' TERM; sleep 1000 & sleep 1000", fifo},
                 .timeout = absl::Seconds(2)})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(Message(status), HasSubstr("2s"));
  EXPECT_FALSE(NotStarted(status));
  ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
  char byte = 0;
  EXPECT_EQ(read(reader, &byte, 1), 0);
  close(reader);
}

TEST_P(HostContractTest, OutputOverTheLimitIsAnErrorThatNamesTheLimit) {
  const absl::Status status = host_->Run({.argv = {"yes"}, .max_stdout_bytes = 100'000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(Message(status), HasSubstr("100000 bytes to its stdout"));
  EXPECT_TRUE(host_->Run({.argv = {"printf", "12345"}, .max_stdout_bytes = 5}).ok());
  EXPECT_FALSE(host_->Run({.argv = {"printf", "123456"}, .max_stdout_bytes = 5}).ok());
}

TEST_P(HostContractTest, AProcessLeftBehindIsNotWaitedFor) {
  const auto result = Sh("head -c 200000 /dev/zero; sleep 1000 & echo $!");
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_GT(result->stdout_data.size(), 200'000u);
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(kill(std::stoi(result->stdout_data.substr(200'000)), SIGKILL), 0);
}

TEST_P(HostContractTest, HostileTextArrivesByteForByteAndRunsNothing) {
  // The long campaign has MUSTER_HOSTILE_STRINGS=10000.
  const char* wanted = getenv("MUSTER_HOSTILE_STRINGS");
  const int strings = wanted != nullptr ? atoi(wanted) : 1000;
  constexpr int kPerCommand = 20;
  const std::string canary = dir_ / "canary";
  const std::vector<std::string> spices = {"'",
                                           "\"",
                                           "`touch " + canary + "`",
                                           "$(touch " + canary + ")",
                                           "\n",
                                           "\\",
                                           "!",
                                           "!!",
                                           "\r",
                                           "#SBATCH",
                                           "é€😀",
                                           "*",
                                           "~",
                                           "${HOME}",
                                           "; touch " + canary,
                                           "&& touch " + canary,
                                           "%s%n",
                                           "\x1b[31m",
                                           "-n",
                                           "{a,b}"};
  std::mt19937 random(20240229);
  for (int done = 0; done < strings; done += kPerCommand) {
    Command command{.argv = {"printf", "%s\\n--\\n"}, .env = {}};
    std::string expected;
    for (int i = 0; i < kPerCommand; ++i) {
      std::string text;
      for (unsigned words = random() % 12; words > 0; --words) {
        text += spices[random() % spices.size()];
        for (unsigned bytes = random() % 8; bytes > 0; --bytes) {
          text += static_cast<char>(1 + random() % 255);
        }
      }
      command.argv.push_back(text);
      expected += text + "\n--\n";
    }
    command.env["EVIL"] = command.argv.back();
    auto result = host_->Run(command);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->stdout_data == expected) << result->stdout_data << "\n is not \n"
                                                 << expected;
    command.argv = {"sh", "-c", "printf %s \"$EVIL\""};
    result = host_->Run(command);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->stdout_data == command.env["EVIL"]);
  }
  EXPECT_EQ(host_->Stat(canary).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(HostContractTest, EveryByteButNulArrives) {
  std::string text;
  for (int byte = 1; byte < 256; ++byte) text += static_cast<char>(byte);
  const auto result = host_->Run({.argv = {"printf", "%s", text}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stdout_data == text);
}

TEST_P(HostContractTest, AHundredProgramsRunAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 100; ++t) {
    threads.emplace_back([this, t, &good] {
      const std::string text = std::to_string(t);
      const auto result =
          host_->Run({.argv = {"cat"}, .stdin_data = text, .timeout = absl::Seconds(120)});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->stdout_data, text);
      ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 100);
}

}  // namespace
}  // namespace muster::hosts
