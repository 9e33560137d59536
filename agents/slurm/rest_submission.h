// A submission as slurmrestd takes it, in JSON.
#ifndef MUSTER_AGENTS_SLURM_REST_SUBMISSION_H_
#define MUSTER_AGENTS_SLURM_REST_SUBMISSION_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "agents/slurm/submit.h"

namespace muster::slurm {

// Returns the body of POST job/submit, for the API with that number (42 for v0.0.42). `environment`
// is the job's, except for what sbatch would add of its own, which is added here. INVALID_ARGUMENT
// names an option that slurmrestd has no field for, or a value that it would take for another one.
absl::StatusOr<std::string> RestSubmission(const Submission& submission,
                                           std::map<std::string, std::string> environment, int api);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_SUBMISSION_H_
