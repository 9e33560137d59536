// Slurm's reasons for waiting, in plain words.
#ifndef MUSTER_AGENTS_SLURM_REASONS_H_
#define MUSTER_AGENTS_SLURM_REASONS_H_

#include <string>
#include <string_view>

namespace muster::slurm {

// "waiting for free nodes (Resources)", "held by its user: let it go on with muster release
// (JobHeldUser)". Slurm's own word stays in it; a reason that the table does
// not know is returned as it came. Empty for "None": Slurm has not looked at the job yet.
std::string ExplainReason(std::string_view reason);

// The explanation alone, and what to do; empty if the table does not know the reason, or there is
// nothing to do but to wait.
std::string_view MeaningOfReason(std::string_view reason);
std::string_view RemedyOfReason(std::string_view reason);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REASONS_H_
