#include "agents/machines/process_id.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

constexpr size_t kMaxStatBytes = 4096;

}  // namespace

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  std::string text;
  if (ReadSmallFile("/proc/" + std::to_string(pid) + "/stat", kMaxStatBytes, &text) != 0)
    return std::nullopt;
  // The second field is the program's name in parentheses, and may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  char state = 0;
  int parent = 0;
  unsigned long long start_ticks = 0;
  const int fields =
      sscanf(text.c_str() + name_end + 1,
             " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
             &state, &parent, &start_ticks);
  if (fields != 3) return std::nullopt;
  return ProcessStat{.parent = parent, .start_ticks = start_ticks};
}

std::string ReadBootId() {
  std::string text;
  if (ReadSmallFile("/proc/sys/kernel/random/boot_id", kMaxStatBytes, &text) != 0) return "";
  return text.substr(0, text.find('\n'));
}

ProcessId Identify(pid_t pid) {
  const std::optional<ProcessStat> stat = ReadProcessStat(pid);
  return {
      .pid = pid, .start_ticks = stat.has_value() ? stat->start_ticks : 0, .boot_id = ReadBootId()};
}

int64_t AgeMs(const ProcessId& process) {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const int64_t now_ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  return now_ms - static_cast<int64_t>(process.start_ticks) * 1000 / sysconf(_SC_CLK_TCK);
}

std::vector<pid_t> ListProcesses() {
  std::vector<pid_t> pids;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return pids;
  while (const dirent* entry = readdir(directory)) {
    const pid_t pid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (pid > 0) pids.push_back(pid);
  }
  closedir(directory);
  return pids;
}

}  // namespace muster::machines
