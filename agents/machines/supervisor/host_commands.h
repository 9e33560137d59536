// Serves the agent on a host that it reaches over SSH: each command of muster-supervisor does with
// the run's directory there what the agent does itself on its own machine.
//
// Each returns the process's exit code (host_report.h). Single-threaded.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/run_signal.h"

namespace muster::machines {

// Carries out the commands in the HostRequests on standard input, several at once, each in a
// process of its own, and writes their HostAnswers to standard output. Ends with its input, once
// they have ended. `run` is called in the process of a command, for its exit code.
using CommandRunner =
    std::function<int(const std::vector<std::string>& words, const std::string& input)>;
int ServeCommand(CommandRunner run);

// Starts a supervisor of the run with that spec, in a session of its own, and returns once that has
// its claim. A run that shows any trace of an earlier start is not started again. `variables`:
// those of the supervisor.
int StartCommand(const std::string& program, const std::string& directory,
                 const std::string& devices, const std::vector<std::string>& variables,
                 const std::string& spec_bytes);

// Makes the run end: TERM to its supervisor; one that has not begun never will.
int StopCommand(const std::string& directory);

// Signals processes of the run; standard error says what keeps it from that.
int SignalCommand(const std::string& directory, const ProcessSignal& signal);

// Writes a file of a lease (agents/core/lease_file.h) into this host's directory, in place of those
// with other names.
int LeaseCommand(const std::string& directory, const std::string& name, const std::string& content);

// Answers the questions on standard input, one after the other, until that ends. A question is a
// HostRequest "report NUMBER" about the runs in its input, "LETTER RUN_DIR" in each line; its
// answer is a HostReport of them: once one of them is further than its letter says, when the
// patience is over, or after a request "again NUMBER" with a larger number. A run that could not be
// looked at is left out. kHostFailed: the program of that path or the directory is gone.
int WatchCommand(const std::string& program, const std::string& runs_directory);

// Removes the files that only Muster needs of the runs in `lines`, a RUN_DIR in each; with `logs`,
// the output as well, and the directory unless the user has left files in it.
int CleanCommand(bool logs, const std::string& lines);

// Removes work/ of runs that were forgotten at least `keep_s` seconds ago, for so long, those
// behind `after` first, and writes the OldWork that there was to standard output.
int OldWorkCommand(const std::string& runs_directory, int64_t keep_s, int budget_ms,
                   const std::string& after);

// Writes the LimitsFound of this host to standard output.
int LimitsCommand();

// ---- what they share

// Says on standard error what cannot be done with which file, and why. kHostFailed.
int HostError(const std::string& what, const std::string& path, int error);
// An agent asks for a report again when the last one has come, which takes seconds. One that is
// silent for so long is gone, whatever sshd knows of its connection.
inline constexpr int64_t kAgentSilenceMs = 600'000;
// Reads what is there, at most so much. False: it is the end.
bool ReadSome(int fd, std::string* bytes);
// False: nobody reads it any more.
bool WriteAll(int fd, std::string_view bytes);
// Returns the name of a run's directory, which is the run's key; empty if the path cannot be one.
std::string RunKeyOf(const std::string& directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_
