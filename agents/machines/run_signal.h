// Signals to the processes of a run on this machine, which are below the process that waits for the
// run's command: its supervisor, or muster-run-as.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_RUN_SIGNAL_H_
#define MUSTER_AGENTS_MACHINES_RUN_SIGNAL_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::machines {

// The signal, by Linux's number.
struct ProcessSignal {
  int number = 0;
  bool first_only = false;  // only to the command's first process
};

// Sends it to the run of that directory. Returns "", or the reason that no process got it, as the
// end of "the signal was not sent: ...".
std::string SignalRun(const std::string& directory, const ProcessSignal& signal);

// Write that as a command of muster-supervisor, "signal DIRECTORY NUMBER first|all", and read
// it.
std::vector<std::string> SignalWords(const std::string& directory, const ProcessSignal& signal);
std::optional<ProcessSignal> ParseSignalWords(const std::vector<std::string>& words);

// Signals the command, process `leader`, which began at that time (process_id.h), and the others
// with the same parent, all with their descendants. Processes that this one may not signal are left
// out. Returns the number of those that got it.
int SignalProcesses(pid_t leader, uint64_t start_ticks, const ProcessSignal& signal);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_SIGNAL_H_
