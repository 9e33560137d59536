// Reads what one call of scancel or scontrol about many jobs says of each.
#ifndef MUSTER_AGENTS_SLURM_JOB_ERRORS_H_
#define MUSTER_AGENTS_SLURM_JOB_ERRORS_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "agents/hosts/host.h"
#include "agents/slurm/job_id.h"

namespace muster::slurm {

class JobErrors {
 public:
  // Reads the errors of a command called `name` that was run to its end with these jobs as its
  // arguments.
  JobErrors(std::string name, const hosts::CommandResult& result);

  // OK: the command has done it to this job. NOT_FOUND: Slurm does not know the job.
  // FAILED_PRECONDITION: it has ended. UNAVAILABLE: anything else, in Slurm's words; also if the
  // command failed without saying for which jobs.
  absl::Status Of(const JobId& id) const;

 private:
  const std::string name_;
  std::map<std::string, std::string, std::less<>> words_;  // by job, as Slurm calls it
  std::string failure_;                                    // of all that it does not name
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_JOB_ERRORS_H_
