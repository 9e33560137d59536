// The words of slurmstepd about memory come when it has killed a batch script, or the script has
// ended: batch.sh, which hands on its other words, is no more by then.
#ifndef MUSTER_AGENTS_SLURM_MEMORY_WORDS_H_
#define MUSTER_AGENTS_SLURM_MEMORY_WORDS_H_

#include <string>
#include <string_view>

#include "agents/hosts/host.h"
#include "agents/slurm/run_files.h"

namespace muster::slurm {

// Returns the lines of slurmstepd about memory; empty if there are none.
std::string MemoryWords(std::string_view slurm_output);

// Adds such lines to the files of a batch script's standard error, as batch.sh has named them,
// where they are not at the end already. Harmless when repeated. A run without such files, and one
// that cannot be written to, stay as they are: the words are in the run's failure, too.
void HandOnMemoryWords(const std::string& words, const RunPaths& paths, hosts::Host* host);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_MEMORY_WORDS_H_
