// Explains in plain words, with Slurm's own behind them, why a run did not succeed.
#ifndef MUSTER_AGENTS_SLURM_EXPLAIN_END_H_
#define MUSTER_AGENTS_SLURM_EXPLAIN_END_H_

#include <optional>
#include <string>
#include <string_view>

#include "agents/slurm/verdict.h"
#include "muster/v1/job.pb.h"

namespace muster::slurm {

// The part that is about the job's last start: batch.sh begins each restart with a mark,
// "muster-start job=34 restart=1".
std::string_view SinceLastStart(std::string_view slurm_output);

// Returns the job's end according to slurmstepd's output ("*** JOB 34 ON n1 CANCELLED AT ... DUE TO
// TIME LIMIT ***"). kUnknown: it says nothing of that.
JobPhase PhaseInOutput(std::string_view slurm_output);

// Explains how a job ended in this phase. `slurm_words` is what Slurm calls that end.
v1::Failure ExplainEnd(JobPhase phase, std::string_view slurm_words, const RunFacts& facts);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_EXPLAIN_END_H_
