// The answers with which slurmctld refuses a job: its words, what they mean, and what to do.
#ifndef MUSTER_AGENTS_SLURM_REFUSALS_H_
#define MUSTER_AGENTS_SLURM_REFUSALS_H_

#include <string_view>

#include "muster/v1/job.pb.h"

namespace muster::slurm {

struct Refusal {
  std::string_view text;  // how slurmctld's words begin
  v1::FailureClass failure_class;
  std::string_view meaning;  // "there is no such partition"
  std::string_view remedy;   // a sentence
  bool retriable = false;    // it is the site's doing, and passes
};

// `words`: what follows "Batch job submission failed: ". Null: the table does not know them, and
// whether slurmctld has the job is not known either.
const Refusal* FindRefusal(std::string_view words);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REFUSALS_H_
