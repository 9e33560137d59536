// Names a process that cannot be mistaken for another one: pids are used again, a pid with its
// start time is not.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_PROCESS_ID_H_
#define MUSTER_AGENTS_MACHINES_PROCESS_ID_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::machines {

struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot; field 22 of /proc/PID/stat
  std::string boot_id;       // start_ticks begins anew with each boot

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

struct ProcessStat {
  pid_t parent = 0;
  uint64_t start_ticks = 0;
};

// Reads /proc/PID/stat; nothing if there is no such process.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);
// Names this boot of the machine; empty if the kernel does not tell.
std::string ReadBootId();
// Returns the process that has this pid now.
ProcessId Identify(pid_t pid);
// Returns the process's age in milliseconds; only for a process of this boot.
int64_t AgeMs(const ProcessId& process);
// Returns every pid in /proc.
std::vector<pid_t> ListProcesses();

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_PROCESS_ID_H_
