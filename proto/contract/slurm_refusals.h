// Lists slurmctld's refusals of jobs: its words, what they mean, and what to do. Pure.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_REFUSALS_H_
#define MUSTER_PROTO_CONTRACT_SLURM_REFUSALS_H_

#include <string_view>

#include "muster/v1/facts.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

struct SlurmRefusal {
  std::string_view text;  // how slurmctld's words begin
  v1::FailureClass failure_class;
  std::string_view meaning;  // "there is no such partition"
  std::string_view remedy;   // a sentence
  bool retriable = false;    // it is the site's doing, and passes
  bool is_of_job = false;    // the cause lies in the job: other clusters would refuse it, too
};

// `words` follow "Batch job submission failed: ". Null: the table does not know them, and whether
// slurmctld has the job is not known either.
const SlurmRefusal* FindSlurmRefusal(std::string_view words);

// Returns whether other jobs use up the limit on jobs that `limit` names, so that it passes.
bool IsFullForNow(const v1::StateReason& limit);
// Returns the failure of a job that slurmctld has refused so. `limit` is the limit that Slurm names
// besides; without a message: none.
v1::Failure RefusedBySlurm(const SlurmRefusal& refusal, std::string_view words,
                           const v1::StateReason& limit);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_REFUSALS_H_
