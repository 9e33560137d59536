// Handles the umask and the limits that a batch script takes along from where it was submitted.
// They travel among the variables of its shell, as SLURM_UMASK and SLURM_RLIMIT_NAME, as those of
// sbatch do. Pure.
#ifndef MUSTER_AGENTS_SLURM_SHELL_LIMITS_H_
#define MUSTER_AGENTS_SLURM_SHELL_LIMITS_H_

#include <set>
#include <string>
#include <string_view>

#include "contract/shell_environment.h"

namespace muster::slurm {

// Returns the limits that a cluster's jobs take along unless their users say otherwise, by name
// ("NOFILE"): `all_of` and `all_but` are PropagateResourceLimits and PropagateResourceLimitsExcept
// of scontrol show config, one of which is "(null)".
std::set<std::string> TakenLimits(std::string_view all_of, std::string_view all_but);

// Returns whether the variable stands for the umask or a limit. No program gets it.
bool IsShellLimit(std::string_view variable);

// Writes specs/limits: the umask, then of each limit that the user asked for or that is among
// `taken` ulimit's letter, value and the name, the number as it came, and 1 if the user asked for
// it. Empty: there is no umask, and so no shell.
std::string LimitsFile(const contract::ShellVariables& variables,
                       const std::set<std::string>& taken);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SHELL_LIMITS_H_
