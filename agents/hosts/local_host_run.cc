// Implements LocalHost::Run with one poll loop for a program's output, its end and its time-out.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "absl/time/time.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/file_error.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/spawn.h"
#include "agents/hosts/steady_now.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::hosts {
namespace {

// A killed process ends at once unless it hangs in the kernel; Run does not hang with it.
constexpr absl::Duration kReapGrace = absl::Seconds(2);
// A pipe has this size, so one read takes all that can be there.
constexpr size_t kReadBytes = 64 << 10;

absl::Status LastError(std::string_view what) {
  return absl::ErrnoToStatus(errno, fmt::format("cannot run a command: {}", what));
}

// Descriptors 0 to 2 are the new process's own, so ours must not be among them.
Fd AboveStdio(Fd fd) {
  return fd.get() > 2 ? std::move(fd) : Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

// This makes a file in memory rather than a pipe: it needs no thread and no poll to be written, and
// can raise no SIGPIPE.
absl::StatusOr<Fd> StdinWith(std::string_view data) {
  Fd fd = AboveStdio(Fd(memfd_create("stdin", MFD_CLOEXEC)));
  if (!fd.valid()) return LastError("memfd_create");
  size_t written = 0;
  while (written < data.size()) {
    const ssize_t n =
        pwrite(fd.get(), data.data() + written, data.size() - written, static_cast<off_t>(written));
    if (n < 0 && errno != EINTR) return LastError("writing its input");
    if (n > 0) written += static_cast<size_t>(n);
  }
  return fd;
}

// One output of the program.
struct Output {
  const char* name;
  size_t max_bytes;
  std::string data = {};
  Fd read_end = {};
  Fd write_end = {};
  bool too_long = false;

  absl::Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return LastError("pipe");
    read_end = AboveStdio(Fd(ends[0]));
    write_end = AboveStdio(Fd(ends[1]));
    if (!read_end.valid() || !write_end.valid()) return LastError("fcntl");
    if (fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return LastError("fcntl");
    return absl::OkStatus();
  }

  // Reads what is there. Closes the pipe at its end.
  void Drain() {
    std::array<char, kReadBytes> buffer;
    while (read_end.valid() && !too_long) {
      const ssize_t n = read(read_end.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        read_end.Close();
        return;
      }
      data.append(buffer.data(), static_cast<size_t>(n));
      too_long = data.size() > max_bytes;
    }
  }
};

enum class End { kExited, kTimedOut, kTooMuchOutput };

// Collects output until the program has ended, or has no right to go on.
End Watch(const Child& child, Output& out, Output& err, absl::Duration deadline) {
  while (true) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return End::kTimedOut;
    // Poll ignores descriptors below 0: outputs that the program has closed.
    pollfd fds[] = {{child.pidfd.get(), POLLIN, 0},
                    {out.read_end.get(), POLLIN, 0},
                    {err.read_end.get(), POLLIN, 0}};
    const absl::Duration wait = std::min(left, absl::Hours(1));
    poll(fds, 3, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    const bool exited = (fds[0].revents & POLLIN) != 0;
    // The pipes are read after the look at pidfd: they have all output of an ended program by now.
    out.Drain();
    err.Drain();
    if (out.too_long || err.too_long) return End::kTooMuchOutput;
    if (exited) return End::kExited;
  }
}

// Returns the wait status, or nothing if the process has not ended in time.
std::optional<int> Reap(const Child& child, absl::Duration patience) {
  pollfd fd = {child.pidfd.get(), POLLIN, 0};
  const absl::Duration deadline = SteadyNow() + patience;
  while (true) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) == child.pid) return status;
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
}

bool Matches(std::string_view variable, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return variable == pattern;
    return variable.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

std::vector<std::string> EnvironmentOf(const Command& command) {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (command.env.contains(std::string(name)) || Matches(name, command.unset_env)) continue;
    env.emplace_back(text);
  }
  for (const auto& [name, value] : command.env) env.push_back(name + "=" + value);
  return env;
}

absl::Status KilledError(const Command& command, End end, const Output& out, const Output& err) {
  const std::string& program = command.argv.front();
  if (end == End::kTimedOut) {
    return absl::DeadlineExceededError(
        fmt::format("\"{}\" did not end within {} and was killed; it said on stderr: \"{}\"",
                    program, absl::FormatDuration(command.timeout), err.data.substr(0, 1000)));
  }
  const Output& culprit = out.too_long ? out : err;
  return absl::ResourceExhaustedError(fmt::format(
      "\"{}\" wrote more than {} bytes to its {} and was killed; raise the limit or ask it "
      "for less",
      program, culprit.max_bytes, culprit.name));
}

}  // namespace

void LocalHost::ReapLeftovers() {
  const MutexLock lock(mutex_);
  std::erase_if(leftovers_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

absl::StatusOr<CommandResult> LocalHost::Run(const Command& command) {
  ReapLeftovers();
  if (absl::Status status = CheckCommand(command); !status.ok()) return status;
  const absl::Duration deadline = SteadyNow() + command.timeout;

  absl::StatusOr<Fd> stdin_fd = StdinWith(command.stdin_data);
  if (!stdin_fd.ok()) return stdin_fd.status();
  Output out{.name = "stdout", .max_bytes = command.max_stdout_bytes};
  Output err{.name = "stderr", .max_bytes = command.max_stderr_bytes};
  for (Output* output : {&out, &err}) {
    if (absl::Status status = output->Open(); !status.ok()) return status;
  }

  absl::StatusOr<Child> child = Spawn({.argv = command.argv,
                                       .env = EnvironmentOf(command),
                                       .working_directory = command.working_directory,
                                       .stdin_fd = stdin_fd->get(),
                                       .stdout_fd = out.write_end.get(),
                                       .stderr_fd = err.write_end.get()});
  if (!child.ok()) return child.status();
  out.write_end.Close();
  err.write_end.Close();

  const End end = Watch(*child, out, err, deadline);
  if (end != End::kExited) kill(-child->pid, SIGKILL);
  const std::optional<int> status = Reap(*child, kReapGrace);
  if (!status.has_value()) {
    const MutexLock lock(mutex_);
    leftovers_.push_back(child->pid);
  }
  if (end != End::kExited || !status.has_value()) return KilledError(command, end, out, err);

  CommandResult result;
  if (WIFSIGNALED(*status)) {
    result.signal = WTERMSIG(*status);
  } else {
    result.exit_code = WEXITSTATUS(*status);
  }
  result.stdout_data = std::move(out.data);
  result.stderr_data = std::move(err.data);
  return result;
}

}  // namespace muster::hosts
