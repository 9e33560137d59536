#include "tests/support/pyxis/enroot_command.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <string_view>

#include "tests/support/pyxis/spank.h"

namespace muster::pyxis {

ChildLog::ChildLog() : fd_(memfd_create("enroot-log", MFD_CLOEXEC)) {}

ChildLog::~ChildLog() {
  if (fd_ >= 0) close(fd_);
}

std::string ChildLog::Text() const {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = pread(fd_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

void ChildLog::Print(bool as_errors) const {
  std::istringstream lines(Text());
  std::string line;
  const auto print = as_errors ? slurm_error : slurm_spank_log;
  print("pyxis: printing enroot log file:");
  while (std::getline(lines, line)) print("pyxis:     %s", line.c_str());
}

Environment VariablesForEnroot(const std::vector<std::string>& job_environment) {
  // A name that ends in '_' stands for all that begin with it.
  static constexpr std::string_view kWanted[] = {
      "HOME",
      "TERM",
      "NVIDIA_VISIBLE_DEVICES",
      "NVIDIA_DRIVER_CAPABILITIES",
      "SLURM_JOB_",
      "SLURM_STEP_",
      "MELLANOX_VISIBLE_DEVICES",
      "MELLANOX_MOUNT_DRIVER",
      "SLURM_MPI_TYPE",
      "SLURM_NODELIST",
      "SLURM_NTASKS",
      "ENROOT_CONFIG_PATH",
  };
  Environment found;
  for (const std::string& entry : job_environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    for (const std::string_view wanted : kWanted) {
      if (name == wanted || (wanted.ends_with('_') && name.starts_with(wanted)))
        found.emplace_back(name, entry.substr(equals + 1));
    }
  }
  return found;
}

pid_t ForkAs(const User& user, const ChildLog& log, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) slurm_error("pyxis: fork error: %s", strerror(errno));
  if (child != 0) return child;
  const int nothing = open("/dev/null", O_RDONLY);
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log.fd(), STDOUT_FILENO) < 0 ||
      dup2(log.fd(), STDERR_FILENO) < 0 || setregid(user.gid, user.gid) != 0 ||
      setreuid(user.uid, user.uid) != 0) {
    _exit(1);
  }
  body();
  _exit(1);
}

void Exec(const std::string& program, const std::vector<std::string>& arguments,
          const Environment& environment) {
  std::vector<std::string> settings;
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  std::vector<char*> envp;
  settings.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    settings.push_back(name);
    settings.back().append("=").append(value);
    envp.push_back(settings.back().data());
  }
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  execvpe(argv[0], argv.data(), envp.data());
}

bool WaitFor(pid_t child) {
  int status = 0;
  if (child < 0) return false;
  if (waitpid(child, &status, 0) < 0) {
    slurm_error("pyxis: could not wait for child %d: %s", child, strerror(errno));
    return false;
  }
  if (WIFSIGNALED(status)) {
    slurm_error("pyxis: child %d terminated with signal %d", child, WTERMSIG(status));
    return false;
  }
  if (WEXITSTATUS(status) != 0) {
    slurm_error("pyxis: child %d failed with error code: %d", child, WEXITSTATUS(status));
    return false;
  }
  return true;
}

bool RunEnroot(const EnrootCall& call, const std::vector<std::string>& arguments,
               const ChildLog& log) {
  return WaitFor(ForkAs(call.user, log, [&] { Exec(call.program, arguments, call.environment); }));
}

}  // namespace muster::pyxis
