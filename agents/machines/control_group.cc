#include "agents/machines/control_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "agents/machines/record.h"
#include "agents/machines/small_file.h"
#include "agents/machines/split.h"

namespace muster::machines {
namespace {

// The files of a group are short, except for the list of its processes.
constexpr size_t kMaxFileBytes = 1 << 20;
// The kernel counts a group's use of its cores over this period, its own default.
constexpr uint64_t kPeriodUs = 100'000;
// Tries to remove a group: a killed process needs a moment to be gone. That is 2 s in all; only a
// process that hangs in the kernel takes longer.
constexpr int kRemoveRounds = 200;
constexpr int kRemoveRoundMs = 10;
// The kernel takes memory from a limit 64 pages at a time, so a process may be ended so far below
// the limit.
constexpr int64_t kChargedAtOnce = 256 << 10;
constexpr char kOomKill[] = "oom_kill ";
constexpr char kGroupPrefix[] = "muster-run-";
constexpr char kControlFileSystem[] = "/sys/fs/cgroup/";

std::string Load(const std::string& path) {
  std::string content;
  return ReadSmallFile(path, kMaxFileBytes, &content) == 0 ? content : "";
}

int64_t NumberIn(const std::string& path) { return atoll(Load(path).c_str()); }

// 0, or errno. Control files are written whole or not at all, and never made.
int WriteControl(const std::string& path, const std::string& text) {
  const hosts::Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

// Returns the number in the line that begins with these words; 0 if there is none.
int64_t NumberAfter(const char* words, const std::string& text) {
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with(words)) return atoll(line.c_str() + strlen(words));
  }
  return 0;
}

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool MayMakeIn(const std::string& directory) { return access(directory.c_str(), W_OK) == 0; }

// Returns the path of this process's group in the hierarchy of that controller ("" for cgroup
// v2's), as the kernel says it: "4:cpu,cpuacct:/a/b" in each line.
std::string OwnGroup(const std::string& lines, std::string_view controller) {
  for (const std::string& line : LinesOf(lines)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : Contains(Split(controllers, ","), controller))
      return line.substr(second + 1);
  }
  return "";
}

GroupPlaces FindUnified(const std::string& root, const std::string& own_group) {
  std::string place = root;
  const size_t slash = own_group.rfind('/');
  if (slash != std::string::npos && own_group.substr(slash + 1) == kServiceGroup) {
    place += own_group.substr(0, slash);
    // The result is seen below.
    WriteControl(place + "/cgroup.subtree_control", "+memory");
    WriteControl(place + "/cgroup.subtree_control", "+cpu");
  }
  GroupPlaces places = {.is_unified = true};
  if (!MayMakeIn(place)) return places;
  const std::vector<std::string> enabled = Split(Load(place + "/cgroup.subtree_control"), " \n");
  if (Contains(enabled, "memory")) places.memory = place;
  if (Contains(enabled, "cpu")) places.cores = place;
  return places;
}

// On cgroup v1 the place is below the group that was given away, else below this process's own,
// else at the top.
std::string FindPlace(const std::string& hierarchy, const std::string& own_group) {
  for (const std::string& place : {hierarchy + "/muster", hierarchy + own_group, hierarchy}) {
    if (MayMakeIn(place)) return place;
  }
  return "";
}

std::string Problem(const std::string& what, const std::string& path, int error) {
  return "cannot " + what + " \"" + path + "\": " + strerror(error);
}

std::string LimitMemory(const std::string& directory, bool is_unified, uint64_t bytes) {
  const std::string path = directory + (is_unified ? "/memory.max" : "/memory.limit_in_bytes");
  if (const int error = WriteControl(path, std::to_string(bytes)))
    return Problem("write", path, error);
  // Memory that goes to swap instead makes the machine slow for all. Kernels without swap have no
  // such file.
  WriteControl(directory + (is_unified ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"),
               is_unified ? "0" : std::to_string(bytes));
  // A run that has lost one of its processes only looks as if it went on.
  if (is_unified) WriteControl(directory + "/memory.oom.group", "1");
  return "";
}

std::string LimitCores(const std::string& directory, bool is_unified, uint32_t cores) {
  const std::string quota = std::to_string(cores * kPeriodUs);
  const std::string path = directory + (is_unified ? "/cpu.max" : "/cpu.cfs_quota_us");
  if (!is_unified) WriteControl(directory + "/cpu.cfs_period_us", std::to_string(kPeriodUs));
  const int error =
      WriteControl(path, is_unified ? quota + " " + std::to_string(kPeriodUs) : quota);
  return error == 0 ? "" : Problem("write", path, error);
}

void KillAllIn(const std::string& directory) {
  if (WriteControl(directory + "/cgroup.kill", "1") == 0) return;
  // Needed before Linux 5.14, and on cgroup v1.
  for (const std::string& process : LinesOf(Load(directory + "/cgroup.procs"))) {
    const int pid = atoi(process.c_str());
    if (pid > 1) kill(pid, SIGKILL);
  }
}

bool RemoveGroup(const std::string& directory) {
  for (int round = 0; round < kRemoveRounds; ++round) {
    if (rmdir(directory.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY && errno != ENOTEMPTY) return false;
    KillAllIn(directory);
    poll(nullptr, 0, kRemoveRoundMs);
  }
  return false;
}

// Makes a group with these limits and takes it away: "", or what could not be done.
std::string Try(const GroupPlaces& places, const GroupLimits& limits) {
  RunGroup group;
  const std::string problem = group.Make(places, RunGroup::NameOf("probe"), limits);
  group.Remove();
  return problem;
}

}  // namespace

GroupPlaces FindGroupPlaces(const std::string& root, const std::string& own) {
  const std::string own_groups = Load(own);
  if (access((root + "/cgroup.controllers").c_str(), F_OK) == 0)
    return FindUnified(root, OwnGroup(own_groups, ""));
  return {.is_unified = false,
          .memory = FindPlace(root + "/memory", OwnGroup(own_groups, "memory")),
          .cores = FindPlace(root + "/cpu", OwnGroup(own_groups, "cpu"))};
}

// ---- a run's groups

std::string RunGroup::NameOf(std::string_view run_key) {
  // The name has the process: two ranks of a run may be on one machine under two names.
  return kGroupPrefix + std::string(run_key) + "." + std::to_string(getpid());
}

std::vector<std::string> RunGroup::DirectoriesOf(const GroupPlaces& places, const std::string& name,
                                                 const GroupLimits& limits) {
  std::vector<std::string> directories;
  if (limits.memory_bytes > 0 && !places.memory.empty())
    directories.push_back(places.memory + "/" + name);
  if (limits.cores > 0 && !places.cores.empty() &&
      (directories.empty() || places.cores != places.memory))
    directories.push_back(places.cores + "/" + name);
  return directories;
}

std::string RunGroup::Make(const GroupPlaces& places, const std::string& name,
                           const GroupLimits& limits) {
  if (limits.memory_bytes > 0 && places.memory.empty())
    return "this user may make no control group for memory";
  if (limits.cores > 0 && places.cores.empty())
    return "this user may make no control group for cores";
  for (const std::string& directory : DirectoriesOf(places, name, limits)) {
    GroupLimits own = limits;
    if (!directory.starts_with(places.memory + "/")) own.memory_bytes = 0;
    if (!directory.starts_with(places.cores + "/")) own.cores = 0;
    std::string problem = MakeOne(directory, places.is_unified, own);
    if (problem.empty()) continue;
    Remove();
    return problem;
  }
  return "";
}

std::string RunGroup::MakeOne(const std::string& directory, bool is_unified,
                              const GroupLimits& limits) {
  if (mkdir(directory.c_str(), 0755) != 0) return Problem("make", directory, errno);
  directories_.push_back(directory);
  std::string problem;
  if (limits.memory_bytes > 0) problem = LimitMemory(directory, is_unified, limits.memory_bytes);
  if (problem.empty() && limits.cores > 0)
    problem = LimitCores(directory, is_unified, limits.cores);
  if (!problem.empty()) return problem;
  const std::string entrance = directory + "/cgroup.procs";
  entrances_.emplace_back(open(entrance.c_str(), O_WRONLY | O_CLOEXEC));
  return entrances_.back().valid() ? "" : Problem("open", entrance, errno);
}

std::vector<int> RunGroup::Entrances() const {
  std::vector<int> fds;
  for (const hosts::Fd& entrance : entrances_) fds.push_back(entrance.get());
  return fds;
}

int64_t CountOomKillsAtLimit(const std::string& group) {
  const std::string events = Load(group + "/memory.events");
  if (!events.empty()) return NumberAfter("oom ", events) > 0 ? NumberAfter(kOomKill, events) : 0;
  const int64_t most = NumberIn(group + "/memory.max_usage_in_bytes");
  const bool was_reached = most >= NumberIn(group + "/memory.limit_in_bytes") - kChargedAtOnce;
  return was_reached ? NumberAfter(kOomKill, Load(group + "/memory.oom_control")) : 0;
}

int64_t RunGroup::CountOomKills() const {
  int64_t kills = 0;
  for (const std::string& directory : directories_) kills += CountOomKillsAtLimit(directory);
  return kills;
}

bool RunGroup::Remove() {
  entrances_.clear();
  const bool removed = std::all_of(directories_.begin(), directories_.end(), RemoveGroup);
  directories_.clear();
  return removed;
}

void RemoveGroupsOf(const std::string& run_directory) {
  const std::string file = run_directory + "/" + kGroupsFile;
  const std::string prefix =
      kGroupPrefix + run_directory.substr(run_directory.rfind('/') + 1) + ".";
  bool removed = true;
  for (const std::string& directory : LinesOf(Load(file))) {
    const bool is_ours = directory.starts_with(kControlFileSystem) &&
                         directory.find("/../") == std::string::npos &&
                         directory.substr(directory.rfind('/') + 1).starts_with(prefix);
    if (is_ours) removed = RemoveGroup(directory) && removed;
  }
  if (removed) unlink(file.c_str());
}

// ---- what can be limited

std::string LimitsFound::Encode() const {
  Record record;
  record.Add("memory", memory ? 1 : 0);
  record.Add("cores", cores ? 1 : 0);
  record.Add("kind", kind);
  record.Add("why", why);
  return record.Encode();
}

std::optional<LimitsFound> LimitsFound::Decode(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  return LimitsFound{.memory = record->Number("memory") != 0,
                     .cores = record->Number("cores") != 0,
                     .kind = record->Text("kind"),
                     .why = record->Text("why")};
}

LimitsFound ProbeLimits() {
  const GroupPlaces places = FindGroupPlaces();
  const std::string no_memory = Try(places, {.memory_bytes = 64 << 20, .cores = 0});
  const std::string no_cores = Try(places, {.memory_bytes = 0, .cores = 1});
  return {.memory = no_memory.empty(),
          .cores = no_cores.empty(),
          .kind = places.is_unified ? "control groups (v2)" : "control groups (v1)",
          .why = no_memory.empty() ? no_cores : no_memory};
}

}  // namespace muster::machines
