#include "agents/machines/run_signal.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/container.h"
#include "agents/machines/process_id.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_records.h"
#include "agents/machines/run_user.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

constexpr size_t kMaxContainersBytes = 64 << 10;
constexpr char kFirst[] = "first";
constexpr char kAll[] = "all";
// The processes below process 1 are everybody's.
constexpr pid_t kInit = 1;

struct Seen {
  pid_t pid = 0;
  ProcessStat stat;
};

std::vector<Seen> ListAll() {
  std::vector<Seen> all;
  for (const pid_t pid : ListProcesses()) {
    if (const auto stat = ReadProcessStat(pid)) all.push_back({pid, *stat});
  }
  return all;
}

// Returns the leader, its descendants, and those of its parent, which the run's orphans come to.
std::vector<Seen> FamilyOf(pid_t leader, uint64_t start_ticks) {
  const std::vector<Seen> all = ListAll();
  std::multimap<pid_t, const Seen*> children;
  std::vector<Seen> family;
  pid_t parent = 0;
  for (const Seen& one : all) {
    children.emplace(one.stat.parent, &one);
    if (one.pid == leader && one.stat.start_ticks == start_ticks) {
      family.push_back(one);
      parent = one.stat.parent;
    }
  }
  if (family.empty()) return family;
  std::set<pid_t> known = {leader};
  std::vector<pid_t> parents = {leader};
  if (parent > kInit) parents.push_back(parent);
  while (!parents.empty()) {
    const pid_t next = parents.back();
    parents.pop_back();
    const auto [begin, end] = children.equal_range(next);
    for (auto at = begin; at != end; ++at) {
      if (!known.insert(at->second->pid).second) continue;
      family.push_back(*at->second);
      parents.push_back(at->second->pid);
    }
  }
  return family;
}

// Signals through the pidfd, so that a pid that changes hands between look and signal is safe.
bool Signal(const Seen& process, int number) {
  const hosts::Fd pidfd(hosts::PidfdOpen(process.pid));
  if (!pidfd.valid()) return false;
  const std::optional<ProcessStat> now = ReadProcessStat(process.pid);
  if (!now.has_value() || now->start_ticks != process.stat.start_ticks) return false;
  return hosts::PidfdSendSignal(pidfd.get(), number) == 0;
}

// Returns the tool of the run's container, if the processes in it are none of the supervisor's.
std::string DaemonOf(const std::string& directory) {
  std::string text;
  ReadSmallFile(directory + "/" + kContainersFile, kMaxContainersBytes, &text);
  for (const char* tool : {kDocker, kPodman}) {
    const std::string begin = std::string(tool) + " ";
    if (text.starts_with(begin) || text.find("\n" + begin) != std::string::npos) return tool;
  }
  return "";
}

}  // namespace

int SignalProcesses(pid_t leader, uint64_t start_ticks, const ProcessSignal& signal) {
  int count = 0;
  for (const Seen& process : FamilyOf(leader, start_ticks)) {
    if (signal.first_only && process.pid != leader) continue;
    if (process.pid != getpid() && Signal(process, signal.number)) ++count;
  }
  return count;
}

std::string SignalRun(const std::string& directory, const ProcessSignal& signal) {
  std::string bytes;
  ReadSmallFile(directory + "/" + kStartedFile, kMaxRecordBytes, &bytes);
  const std::optional<Started> started = Started::Decode(bytes);
  if (!started.has_value()) return "the run's command has not started";
  const ProcessId& leader = started->process;
  if (Identify(leader.pid) != leader) return "the run's command has ended";
  if (const std::string tool = DaemonOf(directory); !tool.empty()) {
    return "the command is in a container of " + tool +
           ", whose processes are not the agent's; use " + tool + " kill there";
  }
  const std::optional<RunUser> user = ReadRunUser(directory);
  if (!user.has_value()) {
    return SignalProcesses(leader.pid, leader.start_ticks, signal) > 0
               ? ""
               : "the run's command has ended";
  }
  const int code = RunAsUser(
      *user, {"signal-processes", std::to_string(leader.pid), std::to_string(leader.start_ticks),
              std::to_string(signal.number), signal.first_only ? kFirst : kAll});
  if (code == EXIT_SUCCESS) return "";
  return code == EXIT_FAILURE ? "the run's command has ended, or is not its user's any more"
                              : "muster-run-as runs nothing as user " + user->name;
}

std::vector<std::string> SignalWords(const std::string& directory, const ProcessSignal& signal) {
  return {"signal", directory, std::to_string(signal.number), signal.first_only ? kFirst : kAll};
}

std::optional<ProcessSignal> ParseSignalWords(const std::vector<std::string>& words) {
  if (words.size() < 2) return std::nullopt;
  const std::string& to = words.back();
  const int number = atoi(words[words.size() - 2].c_str());
  if (number < 1 || number > SIGRTMAX || (to != kFirst && to != kAll)) return std::nullopt;
  return ProcessSignal{.number = number, .first_only = to == kFirst};
}

}  // namespace muster::machines
