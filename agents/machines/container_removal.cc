#include "agents/machines/container_removal.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/container.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "agents/machines/split.h"

namespace muster::machines {
namespace {

// Two looks at a tool are this far apart: podman and docker take a second or less.
constexpr int kRoundMs = 10;
// This many bytes are read of a tool's output: ten thousand names.
constexpr size_t kMaxSaidBytes = 1 << 20;

bool IsOver(const RemovalPatience& patience) {
  return SteadyMilliseconds() >= patience.until_ms ||
         (patience.stop != nullptr && patience.stop->load());
}

pid_t Spawn(const Words& words, int output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", 2 /* O_RDWR */, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  return error == 0 ? pid : -1;
}

// Returns whether it has ended well, in time, and what it said. It serves processes that reap their
// children by number; a supervisor's family reaps all (Supervisor::FinishTool).
bool RunTool(const Words& words, const RemovalPatience& patience, std::string* said) {
  const hosts::Fd output(memfd_create("said", MFD_CLOEXEC));
  if (!output.valid() || IsOver(patience)) return false;
  const pid_t pid = Spawn(words, output.get());
  if (pid < 0) return false;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) != pid) {
    if (IsOver(patience)) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return false;
    }
    poll(nullptr, 0, kRoundMs);
  }
  said->resize(kMaxSaidBytes);
  const ssize_t size = pread(output.get(), said->data(), said->size(), 0);
  said->resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return size >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns whether it is gone.
bool RemoveContainer(const std::string& tool, const std::string& name,
                     const RemovalPatience& patience) {
  const Words removal = RemovalOf(tool, name);
  std::string said;
  if (removal.empty() || RunTool(removal, patience, &said)) return true;
  // A supervisor may have been killed before it made the one that it had written down, and some
  // tools fail to remove what is not there.
  if (!RunTool(ListingOf(tool, name), patience, &said)) return false;
  const std::vector<std::string> names = LinesOf(said);
  return std::find(names.begin(), names.end(), name) == names.end();
}

// A missing file says nothing about the content of the list.
bool IsTrouble(int error) {
  return error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM;
}

std::string ListOf(const std::string& run_directory) {
  return run_directory + "/" + kContainersFile;
}

}  // namespace

std::string ContainerPrefix(std::string_view run_key) {
  return "muster-" + std::string(run_key) + ".";
}

bool MayHaveContainers(const std::string& run_directory) {
  return access(ListOf(run_directory).c_str(), F_OK) == 0;
}

bool RemoveContainersOf(const std::string& run_directory, const RemovalPatience& patience) {
  const std::string file = ListOf(run_directory);
  std::string lines;
  const int error = ReadSmallFile(file, kMaxRecordBytes, &lines);
  if (IsTrouble(error)) return false;
  const std::string prefix = ContainerPrefix(run_directory.substr(run_directory.rfind('/') + 1));
  bool are_gone = true;
  for (const std::string& line : LinesOf(lines)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || !line.substr(space + 1).starts_with(prefix)) continue;
    are_gone = RemoveContainer(line.substr(0, space), line.substr(space + 1), patience) && are_gone;
  }
  if (are_gone) unlink(file.c_str());
  return are_gone && !MayHaveContainers(run_directory);
}

}  // namespace muster::machines
