// The verbs of Slurm's users: each reads its words as Slurm's program of the same name does, and
// refuses by name what it cannot honour. Every function returns the exit code, as in verbs.h.
#ifndef MUSTER_CLIENTS_CLI_SLURM_VERBS_H_
#define MUSTER_CLIENTS_CLI_SLURM_VERBS_H_

#include "clients/cli/verbs.h"

namespace muster::cli {

int Sbatch(Session& session);
int Squeue(Session& session);
int Scancel(Session& session);
int Sacct(Session& session);
int Sinfo(Session& session);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_VERBS_H_
