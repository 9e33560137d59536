// Carries out commands for an agent that has one channel to this host for all of them.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/host_frames.h"
#include "agents/machines/host_report.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// A command's complaints have at most this many bytes; more of them help nobody.
constexpr size_t kMaxComplaintBytes = 4096;

// A command that has a process of its own.
struct Running {
  int64_t id = 0;
  pid_t pid = -1;
  int64_t kill_at_ms = 0;
  hosts::Fd out = {};
  hosts::Fd err = {};
  HostAnswer answer = {};
};

// Takes what a command has written since the last look.
void TakeOutput(hosts::Fd* fd, std::string* bytes) {
  size_t before = 0;
  do {
    before = bytes->size();
    if (fd->valid() && !ReadSome(fd->get(), bytes)) fd->Close();
  } while (bytes->size() > before);
}

// The reading end does not block.
bool MakePipe(hosts::Fd* reading, hosts::Fd* writing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  *reading = hosts::Fd(ends[0]);
  *writing = hosts::Fd(ends[1]);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

class Server {
 public:
  explicit Server(CommandRunner run) : run_(std::move(run)) {}

  int Run() {
    // An agent that has gone is no reason to end commands that are under way.
    signal(SIGPIPE, SIG_IGN);
    // A working directory would keep its file system from being unmounted.
    if (chdir("/") != 0) return HostError("change to", "/", errno);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &own_mask_);
    ends_ = hosts::Fd(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!ends_.valid()) return HostError("watch", "its processes", errno);
    heard_ms_ = SteadyMilliseconds();
    while (!is_over_ || !running_.empty()) {
      Wait();
      if (!is_over_) TakeRequests();
      Reap();
      KillLate();
    }
    return kHostDone;
  }

 private:
  void Wait() {
    std::vector<pollfd> fds = {{ends_.get(), POLLIN, 0}, {is_over_ ? -1 : STDIN_FILENO, POLLIN, 0}};
    int64_t until = running_.empty() ? heard_ms_ + kAgentSilenceMs : INT64_MAX;
    for (const Running& command : running_) {
      fds.push_back({command.out.get(), POLLIN, 0});
      fds.push_back({command.err.get(), POLLIN, 0});
      until = std::min(until, command.kill_at_ms);
    }
    const int64_t left = std::clamp<int64_t>(until - SteadyMilliseconds(), 0, kAgentSilenceMs);
    if (poll(fds.data(), fds.size(), static_cast<int>(left)) < 0) return;
    has_input_ = fds[1].revents != 0;
    for (Running& command : running_) Drain(&command);
  }

  void TakeRequests() {
    std::string bytes;
    if (has_input_) {
      is_over_ = !ReadSome(STDIN_FILENO, &bytes);
      heard_ms_ = SteadyMilliseconds();
    } else if (running_.empty()) {
      is_over_ = SteadyMilliseconds() >= heard_ms_ + kAgentSilenceMs;
    }
    frames_.Add(bytes);
    while (std::optional<HostFrame> frame = frames_.Next()) {
      std::optional<HostRequest> request = HostRequest::Decode(*std::move(frame));
      if (request.has_value()) Begin(*request);
    }
    is_over_ = is_over_ || frames_.is_broken();
  }

  void Begin(const HostRequest& request) {
    Running command = {.id = request.id, .kill_at_ms = SteadyMilliseconds() + request.patience_ms};
    hosts::Fd out;
    hosts::Fd err;
    if (MakePipe(&command.out, &out) && MakePipe(&command.err, &err)) command.pid = fork();
    if (command.pid == 0) Become(request, out.get(), err.get());
    if (command.pid > 0) {
      running_.push_back(std::move(command));
      return;
    }
    Tell({.id = request.id,
          .exit_code = kHostFailed,
          .complaint = std::string("cannot start a process: ") + strerror(errno)});
  }

  // Carries out the request in a process of its own: never returns.
  [[noreturn]] void Become(const HostRequest& request, int out, int err) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &own_mask_, nullptr);
    const int code = run_(request.words, request.input);
    fflush(nullptr);
    _exit(code);
  }

  static void Drain(Running* command) {
    TakeOutput(&command->out, &command->answer.output);
    TakeOutput(&command->err, &command->answer.complaint);
  }

  void Reap() {
    signalfd_siginfo info;
    // Several ends may be one signal, so all processes are looked at.
    while (read(ends_.get(), &info, sizeof info) > 0) {
    }
    for (auto command = running_.begin(); command != running_.end();) {
      int status = 0;
      if (waitpid(command->pid, &status, WNOHANG) != command->pid) {
        ++command;
        continue;
      }
      Drain(&*command);
      HostAnswer& answer = command->answer;
      answer.id = command->id;
      answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      answer.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      answer.complaint.resize(std::min(answer.complaint.size(), kMaxComplaintBytes));
      Tell(answer);
      command = running_.erase(command);
    }
  }

  void KillLate() {
    const int64_t now = SteadyMilliseconds();
    for (Running& command : running_) {
      if (now < command.kill_at_ms) continue;
      kill(command.pid, SIGKILL);
      command.kill_at_ms = now + kAgentSilenceMs;  // one that does not die is not asked ever again
    }
  }

  void Tell(const HostAnswer& answer) {
    is_over_ = !WriteAll(STDOUT_FILENO, answer.Encode()) || is_over_;
  }

  const CommandRunner run_;
  sigset_t own_mask_ = {};
  hosts::Fd ends_;  // of processes
  FrameReader frames_;
  std::list<Running> running_;  // a few: the agent gives one command at a time, beside a report
  int64_t heard_ms_ = 0;
  bool has_input_ = false;
  bool is_over_ = false;  // nothing more comes
};

}  // namespace

int ServeCommand(CommandRunner run) { return Server(std::move(run)).Run(); }

}  // namespace muster::machines
