#include "agents/machines/supervisor/user_commands.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/process_id.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_records.h"
#include "agents/machines/run_signal.h"
#include "agents/machines/tree_removal.h"

namespace muster::machines {
namespace {

TreeRemoval RemoveTreeAt(const std::string& path, int budget_ms) {
  if (!IsThere(path)) return {.is_gone = true};
  const size_t slash = path.rfind('/');
  const std::string parent = path.substr(0, slash);
  const hosts::Fd directory(open(parent.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return {.trouble = "cannot open \"" + parent + "\": " + strerror(errno)};
  const std::optional<uint64_t> mount = MountOf(directory.get());
  if (!mount.has_value())
    return {.trouble = "cannot tell what is mounted in \"" + parent + "\"; mount /proc"};
  return RemoveTree(directory.get(), parent, path.substr(slash + 1), *mount,
                    SteadyMilliseconds() + budget_ms);
}

int RemoveTreeCommand(const std::string& path, int budget_ms) {
  const std::string found = RemoveTreeAt(path, budget_ms).Encode();
  fwrite(found.data(), 1, found.size(), stdout);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Nothing that is there already gets the value, be it a link or a file that others may read.
int WriteSecretCommand(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return errno;
  const hosts::Fd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0) return errno;
    if (n == 0) return EXIT_SUCCESS;
    errno = ENOSPC;
    if (write(file.get(), buffer, static_cast<size_t>(n)) != n) return errno;
  }
}

int LeaveCommand(const std::string& directory) {
  for (const char* name : {kSetupFile, kCommandFile}) unlink((directory + "/" + name).c_str());
  // rmdir leaves alone what is not empty.
  for (const char* name : {kResultsDirectory, kWorkDirectory})
    rmdir((directory + "/" + name).c_str());
  rmdir(directory.c_str());
  return IsThere(directory) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int KillChildrenCommand(pid_t parent) {
  for (const pid_t pid : ListProcesses()) {
    const std::optional<ProcessStat> stat = ReadProcessStat(pid);
    if (stat.has_value() && stat->parent == parent) kill(pid, SIGKILL);
  }
  return EXIT_SUCCESS;
}

int SignalProcessesCommand(const std::vector<std::string>& words) {
  const std::optional<ProcessSignal> signal = ParseSignalWords(words);
  const pid_t leader = atoi(words[1].c_str());
  const bool is_good = signal.has_value() && leader > 1;
  return is_good && SignalProcesses(leader, strtoull(words[2].c_str(), nullptr, 10), *signal) > 0
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}

}  // namespace

std::optional<int> UserCommand(const std::vector<std::string>& words) {
  const std::string_view name = words.empty() ? "" : std::string_view(words[0]);
  const bool is_path = words.size() > 1 && words[1].size() > 1 && words[1].starts_with('/');
  if (name == "remove-tree" && words.size() == 3 && is_path)
    return RemoveTreeCommand(words[1], atoi(words[2].c_str()));
  if (name == "write-secret" && words.size() == 2 && is_path) return WriteSecretCommand(words[1]);
  if (name == "remove-secrets" && words.size() == 2 && is_path) {
    RemoveSecretFiles(words[1]);
    return EXIT_SUCCESS;
  }
  if (name == "leave" && words.size() == 2 && is_path) return LeaveCommand(words[1]);
  if (name == "kill-children" && words.size() == 2 && atoi(words[1].c_str()) > 1)
    return KillChildrenCommand(atoi(words[1].c_str()));
  if (name == "signal-processes" && words.size() == 5) return SignalProcessesCommand(words);
  if (name == "kill-run" && words.size() == 2 && !words[1].empty()) {
    KillProcessesWith("MUSTER_RUN_KEY=" + words[1]);
    return EXIT_SUCCESS;
  }
  return std::nullopt;
}

}  // namespace muster::machines
