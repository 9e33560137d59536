// Reads what a user gives to sbatch, as sbatch itself reads it: command line, environment and the
// directives of the batch script. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_SCRIPT_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_SCRIPT_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/slurm/sbatch_options.h"

namespace muster::client::slurm {

// sbatch copies a word of a directive into a buffer of 8192 bytes.
inline constexpr size_t kMaxDirectiveWordBytes = 8191;
// slurmctld takes no larger script unless told to (SchedulerParameters=max_script_size).
inline constexpr size_t kMaxBatchScriptBytes = 4 << 20;

// The words of sbatch's command line after "sbatch".
struct SbatchCommandLine {
  Settings options;
  std::string script_path;             // empty: none, the script is on standard input or --wrap's
  std::vector<std::string> arguments;  // of the script
};
// INVALID_ARGUMENT, in sbatch's words: an option lacks its argument or may have none, or is the
// beginning of several.
absl::StatusOr<SbatchCommandLine> ReadSbatchCommandLine(const std::vector<std::string>& words);

// Returns the directives of a script. INVALID_ARGUMENT names the line: as above, a quote that does
// not close, a word that is no option, a heterogeneous job ("hetjob"); or the text is no batch
// script: it is empty, too long, does not begin with "#!", or has DOS line breaks.
absl::StatusOr<Settings> ReadSbatchDirectives(std::string_view script);

// SBATCH_* and Pyxis' variables; others are left alone, an unknown SBATCH_* is not understood.
Settings ReadSbatchEnvironment(const std::map<std::string, std::string>& environment);

// The words of one directive, as sbatch splits them: `text` is what is behind "#SBATCH".
absl::StatusOr<std::vector<std::string>> SplitDirective(std::string_view text);

// Holds all together: one setting for each option, and the script that would run.
struct SbatchSubmission {
  Settings options;    // the command line wins over the environment, and that over the script
  std::string script;  // --wrap makes one
  std::vector<std::string> arguments;
  // Options of plug-ins as they were given, "--name=value" or "--name": TakeSpankOptions.
  std::vector<std::string> spank_options;
};
// `script` is the text of the file that the command line names; it is not looked at with --wrap,
// which takes no file. Errors are those of the three above.
absl::StatusOr<SbatchSubmission> ReadSbatch(const std::vector<std::string>& words,
                                            const std::map<std::string, std::string>& environment,
                                            std::string_view script);

// Returns whether some of the options that the table does not have may be those of a site's own
// SPANK plug-ins.
bool MayHaveSpankOptions(const SbatchSubmission& submission);
// Takes those that a cluster allows, named without "--", from what was not understood.
void TakeSpankOptions(const std::set<std::string>& allowed, SbatchSubmission* submission);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_SCRIPT_H_
