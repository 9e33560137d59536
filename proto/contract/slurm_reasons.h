// Maps Slurm's reasons for waiting to a code each, and to plain words.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_REASONS_H_
#define MUSTER_PROTO_CONTRACT_SLURM_REASONS_H_

#include <string>
#include <string_view>

#include "muster/v1/facts.pb.h"

namespace muster::contract {

// The fact behind Slurm's word, "waiting for free nodes, first in line (Resources)", with what to
// do about it. A word that the table does not know has the code OTHER and is shown as it came.
// "None" has no code: Slurm has not looked at the job yet.
v1::StateReason SlurmReason(std::string_view word);
// Explains a word that is about this job alone, as when Slurm refuses the job, or when no other job
// can be in the way: this job itself is over a limit on the jobs of several. Limits on the number
// of jobs, and budgets of minutes, mean what they always do.
v1::StateReason SlurmReasonAlone(std::string_view word);

// Returns the sentence and the remedy as one text, for a message that has no place for facts. Empty
// for "None".
std::string ExplainSlurmReason(std::string_view word);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_REASONS_H_
