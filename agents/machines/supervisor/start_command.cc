#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "agents/hosts/fd.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/host_commands.h"
#include "agents/machines/supervisor/supervisor.h"

namespace muster::machines {
namespace {

bool HasVariable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(std::string(name) + "=")) return true;
  }
  return false;
}

// The rest of the host's variables are the SSH session's.
void AddHostVariables(RunSpec* spec) {
  for (const char* name : kBaseVariables) {
    const char* value = getenv(name);
    if (value == nullptr || HasVariable(spec->environment, name)) continue;
    spec->environment.push_back(std::string(name) + "=" + value);
  }
}

// Makes the directory of a job that names none. Errors are ignored: the program of the job says
// what is wrong.
void MakeResultsDirectory(const std::string& directory, const RunSpec& spec) {
  const std::string results = directory + "/" + kResultsDirectory;
  for (const std::string& variable : spec.environment) {
    if (variable != "MUSTER_RESULTS_DIR=" + results) continue;
    mkdir((directory + "/" + kWorkDirectory).c_str(), 0755);
    mkdir(results.c_str(), 0755);
  }
}

bool HasBegun(const std::string& directory) {
  for (const char* name : {kClaimFile, kStartedFile, kExitFile}) {
    if (access((directory + "/" + name).c_str(), F_OK) == 0) return true;
  }
  // The run can remove what is here.
  return ListSupervisors().contains(directory);
}

// Becomes the supervisor, in this process, and never returns.
[[noreturn]] void BecomeSupervisor(const std::string& program, const std::string& directory,
                                   const std::string& devices,
                                   const std::vector<std::string>& variables, int claimed_fd) {
  setsid();
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (null > STDERR_FILENO) close(null);
  // A working directory would keep its file system from being unmounted.
  if (chdir("/") != 0) _exit(kSupervisorErrnoBase + errno);
  setenv(kClaimedVariable, std::to_string(claimed_fd).c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>(program.c_str()),
                             const_cast<char*>(directory.c_str()),
                             const_cast<char*>(devices.c_str())};
  for (const std::string& variable : variables) argv.push_back(const_cast<char*>(variable.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(kSupervisorErrnoBase + errno);
}

// Starts it and waits until it has the claim.
int Spawn(const std::string& program, const std::string& directory, const std::string& devices,
          const std::vector<std::string>& variables) {
  int ends[2];
  if (pipe(ends) != 0) return HostError("make a pipe for", program, errno);
  hosts::Fd reading(ends[0]);
  hosts::Fd writing(ends[1]);
  fcntl(reading.get(), F_SETFD, FD_CLOEXEC);
  const pid_t pid = fork();
  if (pid < 0) return HostError("start a process for", directory, errno);
  if (pid == 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : kSupervisorSignals) sigaddset(&blocked, signal);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    BecomeSupervisor(program, directory, devices, variables, writing.get());
  }
  writing.Close();
  char byte = 0;
  ssize_t n = 0;
  do {
    n = read(reading.get(), &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) return kHostDone;
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSupervisorLostClaim) return kHostDone;
  if (WIFEXITED(status) && WEXITSTATUS(status) > kSupervisorErrnoBase) {
    return HostError("claim the run in", directory, WEXITSTATUS(status) - kSupervisorErrnoBase);
  }
  fprintf(stderr, "the run's supervisor ended before it had its claim (wait status %d)\n", status);
  return kHostFailed;
}

int Start(const std::string& program, const std::string& directory, const std::string& devices,
          RunSpec* spec, const std::vector<std::string>& variables) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return HostError("make the directory", directory, errno);
  if (HasBegun(directory)) return kHostDone;
  MakeResultsDirectory(directory, *spec);
  // A container has its own.
  if (spec->container_tool.empty()) AddHostVariables(spec);
  const std::string path = directory + "/" + kSpecFile;
  int error = ReplaceSmallFile(path, spec->Encode(), 0600);
  if (error == 0) error = SyncFile(path);
  if (error != 0) return HostError("write", path, error);
  return Spawn(program, directory, devices, variables);
}

}  // namespace

int StartCommand(const std::string& program, const std::string& directory,
                 const std::string& devices, const std::vector<std::string>& variables,
                 const std::string& spec_bytes) {
  std::optional<RunSpec> spec = RunSpec::Decode(spec_bytes);
  if (!spec.has_value()) return HostError("read the spec of", directory, EBADMSG);
  return Start(program, directory, devices, &*spec, variables);
}

}  // namespace muster::machines
