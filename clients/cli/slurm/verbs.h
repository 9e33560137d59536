// The verbs of Slurm's users: each reads its words as Slurm's program of the same name does, and
// refuses by name what it cannot honour. Every function returns the exit code, as in verbs.h.
#ifndef MUSTER_CLIENTS_CLI_SLURM_VERBS_H_
#define MUSTER_CLIENTS_CLI_SLURM_VERBS_H_

#include <span>
#include <string_view>

#include "clients/cli/verbs.h"

namespace muster::cli {

int Sbatch(Session& session);
int Squeue(Session& session);
int Scancel(Session& session);
int Sacct(Session& session);
int Sinfo(Session& session);

struct SlurmVerb {
  std::string_view name;
  Verb verb;
  std::string_view description;
  std::string_view help;  // what --help says besides: an example, and what is honoured
};
std::span<const SlurmVerb> SlurmVerbs();

// The place behind the verb, if the command line has one that reads its words itself; `end` if it
// has not, or asks for help alone.
char** OwnWords(char** begin, char** end);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_VERBS_H_
