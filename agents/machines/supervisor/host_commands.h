// Serves the agent on a host that it reaches over SSH: each command of muster-supervisor does with
// the run's directory there what the agent does itself on its own machine.
//
// Each returns the process's exit code (host_report.h). Single-threaded.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster::machines {

// Starts a supervisor of the run whose spec is on standard input, in a session of its own, and
// returns once that has its claim. A run that shows any trace of an earlier start is not started
// again. `variables`: those of the supervisor. `question`: for the file of that name.
int StartCommand(const std::string& program, const std::string& directory,
                 const std::string& devices, const std::string& question,
                 const std::vector<std::string>& variables);

// Makes the run end: TERM to its supervisor; one that has not begun never will.
int StopCommand(const std::string& directory);

// Writes a HostReport of the runs on standard input, "LETTER RUN_DIR" in each line, to standard
// output: once one of them is further than its letter says, once there is a later question, or when
// the patience is over. A run that could not be looked at is left out.
int ReportCommand(const std::string& runs_directory, int64_t question, int patience_ms);

// Tells reports of a later question.
int QuestionCommand(const std::string& runs_directory, const std::string& question);

// For the runs on standard input, a RUN_DIR in each line: removes what only Muster needs; with
// `logs`, the output as well, and the directory unless the user has left files in it.
int CleanCommand(bool logs);

// Removes work/ of runs that were forgotten at least `keep_s` seconds ago, for so long, those
// behind `after` first, and writes the OldWork that there was to standard output.
int OldWorkCommand(const std::string& runs_directory, int64_t keep_s, int budget_ms,
                   const std::string& after);

// Writes the LimitsFound of this host to standard output.
int LimitsCommand();

// ---- what they share

// Says on standard error what cannot be done with which file, and why. kHostFailed.
int HostError(const std::string& what, const std::string& path, int error);
// All of standard input; false: more than max_bytes, or it cannot be read.
bool ReadInput(size_t max_bytes, std::string* input);
// The name of a run's directory, which is the run's key; empty if the path cannot be one.
std::string RunKeyOf(const std::string& directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_HOST_COMMANDS_H_
