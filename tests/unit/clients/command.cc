#include "tests/unit/clients/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace muster::cli {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void CloseOnExec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

}  // namespace

Command::Command(const std::string& broker, std::vector<std::string> arguments, bool on_terminal,
                 std::vector<std::string> environment) {
  int out[2];
  int err[2];
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  if (on_terminal) {
    EXPECT_EQ(openpty(&out[0], &out[1], nullptr, nullptr, nullptr), 0);
    CloseOnExec(out[0]);
    CloseOnExec(out[1]);
  } else {
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  arguments.insert(arguments.begin(), "muster");
  environment.push_back("HOME=/nonexistent");
  environment.push_back("TERM=xterm");
  if (!broker.empty()) environment.push_back("MUSTER_BROKER=" + broker);
  EXPECT_EQ(posix_spawn(&pid_, MUSTER_BINARY, &actions, nullptr, Pointers(arguments).data(),
                        Pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Command::~Command() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

bool Command::ReadMore() {
  pollfd polled[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  poll(polled, 2, -1);
  const auto take = [](const pollfd& ready, int* fd, std::string* text) {
    if (ready.revents == 0) return;
    char buffer[4096];
    const ssize_t got = read(*fd, buffer, sizeof(buffer));
    if (got > 0) {
      text->append(buffer, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      // A terminal whose other end is closed gives EIO.
      close(*fd);
      *fd = -1;
    }
  };
  take(polled[0], &out_, &outcome_.out);
  take(polled[1], &err_, &outcome_.err);
  return out_ >= 0 || err_ >= 0;
}

void Command::AwaitOut(const std::string& text) {
  while (outcome_.out.find(text) == std::string::npos) ASSERT_TRUE(ReadMore()) << outcome_.err;
}

void Command::AwaitErr(const std::string& text) {
  while (outcome_.err.find(text) == std::string::npos) ASSERT_TRUE(ReadMore()) << outcome_.err;
}

void Command::AwaitFullOut() {
  const int capacity = fcntl(out_, F_GETPIPE_SZ);
  int held = 0;
  do {
    poll(nullptr, 0, 1);
    ASSERT_EQ(ioctl(out_, FIONREAD, &held), 0);
  } while (held < capacity);
}

void Command::AwaitErrAlone(const std::string& text) {
  char buffer[4096];
  while (outcome_.err.find(text) == std::string::npos) {
    const ssize_t got = read(err_, buffer, sizeof(buffer));
    ASSERT_GT(got, 0) << outcome_.err;
    outcome_.err.append(buffer, static_cast<size_t>(got));
  }
}

void Command::Signal(int signal) { kill(pid_, signal); }

Outcome Command::Finish() {
  while (ReadMore()) {
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Outcome RunCommand(const std::string& broker, std::vector<std::string> arguments) {
  return Command(broker, std::move(arguments)).Finish();
}

Outcome RunOnTerminal(const std::string& broker, std::vector<std::string> arguments,
                      std::vector<std::string> environment) {
  return Command(broker, std::move(arguments), true, std::move(environment)).Finish();
}

}  // namespace muster::cli
