// The help of muster sbatch: all options of sbatch, those that it takes and those that it refuses.
// Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SBATCH_HELP_H_
#define MUSTER_CLIENTS_CLI_SLURM_SBATCH_HELP_H_

#include <string>
#include <string_view>

namespace muster::cli {

// --help: a line for each option, grouped by what they are for; those that are refused at the end,
// each with what to do instead.
std::string SbatchHelp();
// --usage: the same options in brief, without words.
std::string SbatchUsage();

// The words of the help about an option; empty: none.
std::string_view SbatchHelpOf(std::string_view option);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SBATCH_HELP_H_
