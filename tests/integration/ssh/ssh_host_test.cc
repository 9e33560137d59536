// Tests what only a host behind SSH has: hosts that are down or go down, few channels, odd shells.
#include "agents/hosts/ssh_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "agents/hosts/host_keys.h"
#include "agents/hosts/local_host.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/ssh/host_contract.h"
#include "tests/integration/ssh/sshd.h"

#ifdef __SANITIZE_ADDRESS__
// libssh2 1.10 frees a part of each ecdsa key that it reads too few times.
extern "C" const char* __lsan_default_suppressions() { return "leak:CRYPTO_zalloc\n"; }
#endif

namespace muster::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Text(Host& host, std::vector<std::string> argv) {
  const auto result = host.Run({.argv = std::move(argv)});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->stdout_data : "";
}

// Holds a port that nobody listens on, but that is taken: connections are refused.
class DeadPort {
 public:
  DeadPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  // Accepts connections from now on, and says nothing on them.
  void Listen() { EXPECT_EQ(listen(fd_.get(), 10), 0); }
  LoginHost host() const { return {"127.0.0.1", port_}; }

 private:
  Fd fd_;
  uint16_t port_ = 0;
};

// Starts a program on the host that tells where it is, and goes on until it is killed.
struct LongProgram {
  explicit LongProgram(const TempDir& dir) : fifo(dir / "begun") {
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  }
  Command command() const {
    return {.argv = {"sh", "-c", "echo up >\"$0\"; exec sleep 100", fifo},
            .timeout = absl::Seconds(300)};
  }
  void WaitForBegin() const { std::ifstream(fifo).get(); }

  std::string fifo;
};

// Two login hosts of one cluster, which take the same key.
struct TwoHosts {
  TwoHosts() {
    std::ofstream(first.known_hosts(), std::ios::app)
        << fmt::format("[127.0.0.1]:{} {}\n", second.host().port, second.host_key_line());
    std::ofstream(second.directory() / "authorized_keys", std::ios::app)
        << std::ifstream(first.Config().key_file + ".pub").rdbuf();
  }
  SshConfig Config() const {
    SshConfig config = first.Config();
    config.hosts = {first.host(), second.host()};
    return config;
  }

  Sshd first;
  Sshd second;
};

// ---- hosts that are down

TEST(SshHostTest, AHostThatIsDownIsPassedOver) {
  const Sshd sshd;
  const DeadPort dead;
  SshConfig config = sshd.Config();
  config.hosts = {dead.host(), {"no-such-host.invalid", 22}, sshd.host()};
  const auto host = HostOf(config);
  EXPECT_EQ(Text(*host, {"echo", "here"}), "here\n");
  EXPECT_EQ(host->host_in_use(), sshd.host().ToString());
  EXPECT_EQ(host->Name(), sshd.host().ToString());
}

TEST(SshHostTest, AHostThatSaysNothingIsPassedOverAfterItsTimeOut) {
  const Sshd sshd;
  DeadPort silent;
  silent.Listen();
  SshConfig config = sshd.Config();
  config.hosts = {silent.host(), sshd.host()};
  config.handshake_timeout = absl::Seconds(1);
  const auto host = HostOf(config);
  EXPECT_EQ(Text(*host, {"echo", "here"}), "here\n");
  config.hosts = {silent.host()};
  const absl::Status status = ConnectOnce(config);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr(silent.host().ToString()), HasSubstr("handshake"),
                                     HasSubstr("not within 1s")));
}

TEST(SshHostTest, WithAllHostsDownEachIsNamedAndNothingIsSaidAboutFiles) {
  const DeadPort one;
  const DeadPort two;
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.hosts = {one.host(), two.host()};
  const auto host = HostOf(config);
  const absl::Status status = host->Run({.argv = {"true"}}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(NotStarted(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr(one.host().ToString()), HasSubstr("refused"),
                                     HasSubstr(two.host().ToString())));
  EXPECT_TRUE(absl::IsUnavailable(host->Stat("/tmp").status()));
  EXPECT_TRUE(absl::IsUnavailable(host->WriteFile("/tmp/x", "", {})));
  EXPECT_TRUE(absl::IsUnavailable(host->RemoveTree("/tmp/x")));
  EXPECT_TRUE(absl::IsUnavailable(host->StatMany({"/tmp"})[0].status()));
  EXPECT_EQ(host->host_in_use(), "");
}

TEST(SshHostTest, AfterAFailureCallsFailAtOnceUntilTheNextAttemptIsDue) {
  const DeadPort dead;
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.hosts = {dead.host()};
  config.min_backoff = absl::Hours(1);
  config.max_backoff = absl::Hours(1);
  const auto host = HostOf(config);
  const absl::Status first = host->Run({.argv = {"true"}}).status();
  const absl::Status second = host->Run({.argv = {"true"}}).status();
  EXPECT_TRUE(absl::IsUnavailable(first));
  EXPECT_EQ(NextAttemptOf(first), std::nullopt);
  EXPECT_EQ(Message(second), Message(first)) << "what changes from call to call is in fields";
  EXPECT_GT(NextAttemptOf(second).value_or(absl::ZeroDuration()), absl::Minutes(1));
}

// ---- hosts that go down

TEST(SshHostTest, AProgramWhoseConnectionIsLostMayHaveRunAndTheNextOneGoesElsewhere) {
  TwoHosts hosts;
  const auto host = HostOf(hosts.Config());
  ASSERT_TRUE(host->Connect().ok());
  EXPECT_EQ(host->host_in_use(), hosts.first.host().ToString());
  const TempDir dir;
  const LongProgram program(dir);
  absl::Status status;
  std::thread caller([&] { status = host->Run(program.command()).status(); });
  program.WaitForBegin();
  hosts.first.Kill();
  caller.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(NotStarted(status));
  EXPECT_THAT(Message(status), HasSubstr("it may have run"));
  EXPECT_EQ(Text(*host, {"echo", "again"}), "again\n");
  EXPECT_EQ(host->host_in_use(), hosts.second.host().ToString());
}

// These words, and the code that ssh has for its own failures, are the program's.
TEST(SshHostTest, AProgramThatSpeaksOfConnectionsAndExitsWith255IsNoLostConnection) {
  const TwoHosts hosts;
  const auto host = HostOf(hosts.Config());
  const TempDir dir;
  const std::string words =
      "ssh: connect to host login1 port 22: Connection refused\r\n"
      "Connection timed out\nConnection reset by peer\n"
      "kex_exchange_identification: Connection closed by remote host\n"
      "No route to host\nBroken pipe\nPermission denied (publickey).\n";
  const std::string said = words + std::string("\0\xff", 2) + words;
  ASSERT_TRUE(LocalHost().WriteFile(dir / "said", said, {}).ok());
  const auto result = host->Run({.argv = {"sh", "-c",
                                          "echo \"$SSH_CONNECTION\" >>\"$0/ran\"; cat \"$0/said\"; "
                                          "cat \"$0/said\" >&2; exit 255",
                                          dir.path()}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 255);
  EXPECT_EQ(result->signal, 0);
  EXPECT_EQ(result->stdout_data, said);
  EXPECT_EQ(result->stderr_data, said);
  EXPECT_EQ(host->host_in_use(), hosts.first.host().ToString());
  EXPECT_EQ(Text(*host, {"sh", "-c", "echo \"$SSH_CONNECTION\" >>\"$0/ran\"", dir.path()}), "");
  const std::string port = std::to_string(hosts.first.host().port);
  EXPECT_EQ(Text(*host, {"awk", "{ print $4 }", dir / "ran"}), fmt::format("{0}\n{0}\n", port));
}

TEST(SshHostTest, ASessionThatDiesIdleIsMadeAgain) {
  Sshd sshd;
  const auto host = HostOf(sshd.Config());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Text(*host, {"echo", "here"}), "here\n");
    sshd.KillSessions();
    // The end of an idle session is noticed by itself, so that no program is given to it.
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!host->host_in_use().empty() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(host->host_in_use(), "");
  }
}

TEST(SshHostTest, AHostThatHangsIsGivenUpAfterItsSilence) {
  Sshd sshd;
  SshConfig config = sshd.Config();
  config.keepalive_interval = absl::Milliseconds(300);
  const auto host = HostOf(config);
  const TempDir dir;
  const LongProgram program(dir);
  absl::Status status;
  std::thread caller([&] { status = host->Run(program.command()).status(); });
  program.WaitForBegin();
  sshd.SignalSessions(SIGSTOP);
  caller.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("has said nothing for"));
  sshd.SignalSessions(SIGCONT);
}

TEST(SshHostTest, AQuietProgramIsNoSilentHost) {
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.keepalive_interval = absl::Milliseconds(100);
  const auto host = HostOf(config);
  EXPECT_EQ(Text(*host, {"sh", "-c", "sleep 2; echo done"}), "done\n");
}

TEST(SshHostTest, AWriteThatIsCutOffLeavesTheOldFile) {
  Sshd sshd;
  const auto host = HostOf(sshd.Config());
  const TempDir dir;
  ASSERT_TRUE(host->WriteFile(dir / "f", "old", {}).ok());
  const std::string big(32 << 20, 'x');
  for (int i = 0; i < 5; ++i) {
    absl::Status status;
    std::thread caller([&] { status = host->WriteFile(dir / "f", big, {}); });
    // Waits until a part of it is there.
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (LocalHost().ListDirectory(dir.path())->size() < 2 && absl::Now() < deadline) {
    }
    sshd.KillSessions();
    caller.join();
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    }
    const auto content = LocalHost().ReadFile(dir / "f", big.size());
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(*content == "old" || (status.ok() && *content == big)) << content->size();
    ASSERT_TRUE(LocalHost().WriteFile(dir / "f", "old", {}).ok());
    LocalHost().Run({.argv = {"sh", "-c", "rm -f \"$0\"/*.tmp", dir.path()}}).IgnoreError();
  }
}

// ---- programs to talk with

// Keeps the words of one.
class Heard {
 public:
  TalkListener Listener() {
    return {.hear = [this](std::string_view bytes) { Note([&] { words_ += bytes; }); },
            .ended = [this](const absl::Status& why) { Note([&] { end_ = why; }); }};
  }
  bool Await(const std::string& words) {
    return Await([&] { return words_ == words; });
  }
  // OK: it has not ended in time.
  absl::Status AwaitEnd() {
    Await([this] { return !end_.ok(); });
    const std::lock_guard lock(mutex_);
    return end_;
  }

 private:
  void Note(const std::function<void()>& note) {
    const std::lock_guard lock(mutex_);
    note();
    changed_.notify_all();
  }
  bool Await(const std::function<bool()>& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), what);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string words_;
  absl::Status end_;
};

TEST(SshHostTest, BothSidesTalkAsLongAsTheProgramRuns) {
  const Sshd sshd;
  const auto host = HostOf(sshd.Config());
  Heard heard;
  const auto talk = host->Talk({.argv = {"sh", "-c",
                                         "while read -r line; do echo \"<$line>\"; "
                                         "[ \"$line\" != end ] || exit 3; done"}},
                               heard.Listener());
  ASSERT_TRUE(talk.ok()) << talk.status();
  (*talk)->Say("one\n");
  EXPECT_TRUE(heard.Await("<one>\n"));
  EXPECT_EQ(Text(*host, {"echo", "beside"}), "beside\n");
  (*talk)->Say("two\nth");
  EXPECT_TRUE(heard.Await("<one>\n<two>\n"));
  (*talk)->Say("ree\nend\n");
  EXPECT_THAT(Message(heard.AwaitEnd()), HasSubstr("exit code 3"));
  EXPECT_TRUE(heard.Await("<one>\n<two>\n<three>\n<end>\n"));
}

TEST(SshHostTest, MuchIsSaidAndHeardWhole) {
  const Sshd sshd;
  const auto host = HostOf(sshd.Config());
  Heard heard;
  const auto talk = host->Talk({.argv = {"cat"}}, heard.Listener());
  ASSERT_TRUE(talk.ok()) << talk.status();
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string part = std::string(10'000, static_cast<char>('a' + i % 26)) + "\n";
    (*talk)->Say(part);
    all += part;
  }
  EXPECT_TRUE(heard.Await(all));
}

TEST(SshHostTest, AProgramThatNobodyTalksWithAnyMoreSeesTheEndOfItsInput) {
  const Sshd sshd;
  const auto host = HostOf(sshd.Config());
  const TempDir dir;
  const std::string fifo = dir / "ended";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Heard heard;
  auto talk =
      host->Talk({.argv = {"sh", "-c", "echo up; cat; echo over >\"$0\"", fifo}}, heard.Listener());
  ASSERT_TRUE(talk.ok()) << talk.status();
  EXPECT_TRUE(heard.Await("up\n"));
  talk->reset();
  std::string word;
  std::ifstream(fifo) >> word;
  EXPECT_EQ(word, "over");
}

TEST(SshHostTest, ATalkEndsWithItsConnectionAndWithAProgramThatIsNotThere) {
  Sshd sshd;
  const auto host = HostOf(sshd.Config());
  Heard heard;
  const auto talk = host->Talk({.argv = {"sh", "-c", "echo up; exec cat"}}, heard.Listener());
  ASSERT_TRUE(talk.ok()) << talk.status();
  EXPECT_TRUE(heard.Await("up\n"));
  Heard nothing;
  const auto absent = host->Talk({.argv = {"/no/such/program"}}, nothing.Listener());
  ASSERT_TRUE(absent.ok()) << absent.status();
  EXPECT_THAT(Message(nothing.AwaitEnd()), HasSubstr("/no/such/program"));
  host->Stop();
  EXPECT_TRUE(absl::IsUnavailable(heard.AwaitEnd()));
  Heard late;
  EXPECT_TRUE(host->Talk({.argv = {"cat"}}, late.Listener()).ok());
  EXPECT_TRUE(absl::IsUnavailable(late.AwaitEnd()));
}

TEST(SshHostTest, TalksLeaveAChannelForWhatEndsSoon) {
  const Sshd sshd;
  SshConfig config = sshd.Config();
  config.max_channels = 1;
  const auto host = HostOf(config);
  Heard heard;
  const auto one = host->Talk({.argv = {"sh", "-c", "echo up; exec cat"}}, heard.Listener());
  const auto two = host->Talk({.argv = {"sh", "-c", "echo up; exec cat"}}, heard.Listener());
  EXPECT_TRUE(heard.Await("up\nup\n"));
  EXPECT_EQ(Text(*host, {"echo", "beside"}), "beside\n");
}

// ---- channels

TEST(SshHostTest, AHostWithFewSessionsServesManyCallers) {
  const Sshd sshd("MaxSessions 2");
  const auto host = HostOf(sshd.Config());
  std::vector<std::thread> threads;
  for (int t = 0; t < 30; ++t) {
    threads.emplace_back([&host, t] {
      const std::string text = std::to_string(t);
      const auto result =
          host->Run({.argv = {"cat"}, .stdin_data = text, .timeout = absl::Seconds(120)});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->stdout_data, text);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SshHostTest, WhatIsOverItsTimeIsKilledEvenWhereSessionsAreFew) {
  const Sshd sshd("MaxSessions 2");
  const auto host = HostOf(sshd.Config());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&host] {
      const absl::Status status =
          host->Run({.argv = {"sleep", "100"}, .timeout = absl::Seconds(3)}).status();
      // Programs that found no channel in their time were not started.
      EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Text(*host, {"echo", "next"}), "next\n");
}

TEST(SshHostTest, WhereNothingCanBeKilledThatIsSaidAndTheNextProgramRuns) {
  const Sshd sshd("MaxSessions 1");
  const auto host = HostOf(sshd.Config());
  const absl::Status status =
      host->Run({.argv = {"sleep", "100"}, .timeout = absl::Milliseconds(500)}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("MaxSessions"), HasSubstr("may have run")));
  EXPECT_EQ(Text(*host, {"echo", "next"}), "next\n");
}

TEST(SshHostTest, WhatFindsNoChannelInItsTimeWasNotStarted) {
  Sshd sshd;
  SshConfig config = sshd.Config();
  config.max_channels = 1;
  const auto host = HostOf(config);
  const TempDir dir;
  const LongProgram program(dir);
  Command blocker = program.command();
  std::thread caller([&] { (void)host->Run(blocker); });
  program.WaitForBegin();
  const std::string canary = dir / "canary";
  const absl::Status status =
      host->Run({.argv = {"touch", canary}, .timeout = absl::Milliseconds(200)}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("not started"));
  EXPECT_EQ(LocalHost().Stat(canary).status().code(), absl::StatusCode::kNotFound);
  sshd.KillSessions();
  caller.join();
}

TEST(SshHostTest, ALoginShellThatRunsNothingIsNoEndedProgram) {
  Sshd sshd;
  SshConfig config = sshd.Config();
  config.key_file =
      sshd.NewUserKey("ed25519", "command=\"echo This account is not available; exit 1\"");
  const auto host = HostOf(config);
  const absl::Status status = host->Run({.argv = {"true"}}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("This account is not available"));
  EXPECT_TRUE(absl::IsUnavailable(host->Stat("/tmp").status()));
}

TEST(SshHostTest, ALoginShellThatHangsIsGivenUp) {
  Sshd sshd;
  SshConfig config = sshd.Config();
  config.key_file = sshd.NewUserKey("ed25519", "command=\"exec sleep 100\"");
  config.channel_timeout = absl::Milliseconds(500);
  const auto host = HostOf(config);
  const absl::Status status = host->Run({.argv = {"true"}}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("did not start it within 500ms"));
}

TEST(SshHostTest, CallersAreAnsweredWhenTheHostObjectGoes) {
  const Sshd sshd;
  auto host = HostOf(sshd.Config());
  ASSERT_TRUE(host->Connect().ok());
  host.reset();
}

}  // namespace
}  // namespace muster::hosts
