#include "agents/machines/supervisor/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace muster::machines {
namespace {

// The path that execvp(3) uses when PATH is not set.
constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string PathOf(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

// The child shares this state with its parent, which waits until the child has executed its program
// or has given up.
struct Shared {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* directory;
  int fds[3];
  int extra_fd;
  const int* group_fds;
  size_t groups;
  volatile int error;
  volatile bool in_groups;
  volatile bool in_directory;
};

[[noreturn]] void RunChild(Shared& shared) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  shared.in_groups = true;
  for (size_t i = 0; i < shared.groups && shared.in_groups; ++i)
    shared.in_groups = write(shared.group_fds[i], "0", 1) == 1;
  if (shared.in_groups && chdir(shared.directory) == 0) {
    shared.in_directory = true;
    for (int fd = 0; fd < 3; ++fd) dup2(shared.fds[fd], fd);
    if (shared.extra_fd > kExtraFd) dup2(shared.extra_fd, kExtraFd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(shared.program, shared.arguments, shared.environment);
  }
  shared.error = errno;
  _exit(127);
}

// vfork(2) rather than fork(2): the child's error comes back in memory, and no page table is
// copied.
pid_t Vfork(Shared& shared) {
  const pid_t pid = vfork();
  if (pid == 0) RunChild(shared);
  return pid;
}

}  // namespace

int FindProgram(const std::string& word, const std::string& path, std::string* found) {
  if (word.find('/') != std::string::npos) {
    *found = word;
    return 0;
  }
  int error = ENOENT;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(directory.size());
    if (!rest.empty()) rest.remove_prefix(1);
    if (!directory.starts_with('/')) continue;
    const std::string candidate = std::string(directory) + "/" + word;
    struct stat info;
    if (stat(candidate.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (access(candidate.c_str(), X_OK) == 0) {
      *found = candidate;
      return 0;
    }
    error = EACCES;
  }
  return error;
}

ChildStart StartChild(const ChildRequest& request) {
  ChildStart start;
  std::string program;
  start.path = request.words.front();
  start.error = FindProgram(request.words.front(), PathOf(request.environment), &program);
  if (start.error != 0) return start;
  start.path = program;

  const std::vector<char*> arguments = Pointers(request.words);
  const std::vector<char*> environment = Pointers(request.environment);
  Shared shared = {.program = program.c_str(),
                   .arguments = arguments.data(),
                   .environment = environment.data(),
                   .directory = request.working_directory.c_str(),
                   .fds = {request.stdin_fd, request.stdout_fd, request.stderr_fd},
                   .extra_fd = request.extra_fd,
                   .group_fds = request.group_fds.data(),
                   .groups = request.group_fds.size(),
                   .error = 0,
                   .in_groups = false,
                   .in_directory = false};
  start.pid = Vfork(shared);
  if (start.pid < 0) {
    start.error = errno;
    start.step = ExitRecord::Step::kProcess;
  } else if (shared.error != 0) {
    start.error = shared.error;
    if (!shared.in_groups) {
      start.step = ExitRecord::Step::kProcess;
      start.path = "the run's control group";
    } else if (!shared.in_directory) {
      start.step = ExitRecord::Step::kWorkingDirectory;
      start.path = request.working_directory;
    }
  }
  return start;
}

}  // namespace muster::machines
