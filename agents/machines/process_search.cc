#include "agents/machines/process_search.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/process_id.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

// An environment, or the words of a command, is at most a few megabytes (the kernel's limit on both
// together).
constexpr size_t kMaxArgumentBytes = 8 << 20;
// Its lists of CPUs and groups are kilobytes on the largest machines.
constexpr size_t kMaxStatusBytes = 64 << 10;
// Stragglers may fork between a look and a kill; so many looks catch all but an attack.
constexpr int kStragglerRounds = 20;

bool IsSupervisor(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "muster-supervisor";
}

// Returns whether it runs as this process does; anybody may call a program muster-supervisor. The
// owner of its directory in /proc does not tell, for that is root if the program may not be read.
bool IsOurs(pid_t pid) {
  std::string status;
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  if (ReadSmallFile(path, kMaxStatusBytes, &status) != 0) return false;
  constexpr std::string_view kField = "\nUid:\t";
  const size_t at = status.find(kField);
  if (at == std::string::npos) return false;
  const char* text = status.c_str() + at + kField.size();
  char* end = nullptr;
  const unsigned long real = strtoul(text, &end, 10);
  const unsigned long effective = strtoul(end, &end, 10);
  return real == getuid() && effective == geteuid();
}

// Returns the first words of a command line that has NUL bytes between them.
std::vector<std::string> FirstWords(std::string_view words, size_t count) {
  std::vector<std::string> first;
  while (!words.empty() && first.size() < count) {
    const size_t nul = words.find('\0');
    first.emplace_back(words.substr(0, nul));
    words.remove_prefix(nul == std::string_view::npos ? words.size() : nul + 1);
  }
  return first;
}

// Returns the first words of the process, if they are a supervisor's.
std::vector<std::string> SupervisorWords(pid_t pid) {
  std::string words;
  const std::string path = "/proc/" + std::to_string(pid) + "/cmdline";
  if (ReadSmallFile(path, kMaxArgumentBytes, &words) != 0) return {};
  std::vector<std::string> argv = FirstWords(words, 3);
  if (argv.size() < 3 || !IsSupervisor(argv[0])) argv.clear();
  return argv;
}

// Kills through the pidfd, so that a pid that changes hands between look and kill is safe.
bool KillIfItHas(pid_t pid, const std::string& variable) {
  const hosts::Fd pidfd(hosts::PidfdOpen(pid));
  if (!pidfd.valid()) return false;
  std::string environment;
  const std::string path = "/proc/" + std::to_string(pid) + "/environ";
  if (ReadSmallFile(path, kMaxArgumentBytes, &environment) != 0) return false;
  if (('\0' + environment).find(variable) == std::string::npos) return false;
  return hosts::PidfdSendSignal(pidfd.get(), SIGKILL) == 0;
}

}  // namespace

std::map<std::string, Claim> ListSupervisors() {
  std::map<std::string, Claim> supervisors;
  for (const pid_t pid : ListProcesses()) {
    if (SupervisorWords(pid).empty()) continue;
    // Its words are read again, so that they are those of the process that is named here.
    const ProcessId process = Identify(pid);
    const std::vector<std::string> argv = SupervisorWords(pid);
    if (argv.empty() || !IsOurs(pid)) continue;
    const auto [found, is_new] =
        supervisors.try_emplace(argv[1], Claim{.owner = process, .devices = argv[2]});
    // A child that is not yet the user's program has its parent's words, and is younger.
    if (!is_new && process.start_ticks < found->second.owner.start_ticks)
      found->second.owner = process;
  }
  return supervisors;
}

void KillProcessesWith(const std::string& variable) {
  // The ends belong to it, so that run 1 is not taken for run 10.
  const std::string whole = std::string(1, '\0') + variable + '\0';
  for (int round = 0; round < kStragglerRounds; ++round) {
    bool killed = false;
    for (const pid_t pid : ListProcesses()) killed |= KillIfItHas(pid, whole);
    if (!killed) return;
  }
}

}  // namespace muster::machines
