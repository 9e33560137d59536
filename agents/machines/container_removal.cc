#include "agents/machines/container_removal.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agents/machines/container.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

// podman and docker take a second or less; what takes longer is tried again when the run is
// forgotten. 20 s in all.
constexpr int kRounds = 2000;
constexpr int kRoundMs = 10;

// Whether it has ended well, in time.
bool RunQuietly(const Words& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", 2 /* O_RDWR */, 0);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return false;
  int status = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    poll(nullptr, 0, kRoundMs);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return false;
}

}  // namespace

std::string ContainerPrefix(std::string_view run_key) {
  return "muster-" + std::string(run_key) + ".";
}

void RemoveContainersOf(const std::string& run_directory) {
  const std::string file = run_directory + "/" + kContainersFile;
  std::string lines;
  if (ReadSmallFile(file, kMaxRecordBytes, &lines) != 0) return;
  const std::string prefix = ContainerPrefix(run_directory.substr(run_directory.rfind('/') + 1));
  bool removed = true;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    begin = end + 1;
    const size_t space = line.find(' ');
    if (space == std::string::npos || !line.substr(space + 1).starts_with(prefix)) continue;
    const Words words = RemovalOf(line.substr(0, space), line.substr(space + 1));
    removed = (words.empty() || RunQuietly(words)) && removed;
  }
  if (removed) unlink(file.c_str());
}

}  // namespace muster::machines
