// A batch script as a job. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/slurm/sbatch_environment.h"
#include "clients/cpp/slurm/sbatch_script.h"
#include "contract/task_array.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

// The place and the way in which a script was submitted.
struct SbatchPlace {
  std::string directory;    // where the user stood, an absolute path
  std::string script_path;  // of the script; empty: standard input, or --wrap
  SubmitEnvironment environment;
};

struct SbatchJob {
  // The command is the script, which runs as a batch script. contract::WhySlurmOnly says whether
  // only Slurm can run it.
  v1::JobSpec spec;
  // The differences from task to task with --array; each is a job of its own. Empty: it is one job.
  std::vector<contract::ArrayTask> tasks;
  // The file with the variables that the script takes along, which the spec names by its digest;
  // empty if it takes none.
  std::string shell_file;
  // The differences from sbatch, a sentence each.
  std::vector<std::string> notes;
};

// INVALID_ARGUMENT names every option, its value and where it was, if the value cannot be read, if
// Muster does not take the option, or if this reader does not know it.
//
// The job starts where the user stood (contract::kHereOption marks that it was not said), and its
// output goes to slurm-%j.out there (of an array to slurm-%A_%a.out), as with sbatch; %j is Slurm's
// own number, %A Muster's.
absl::StatusOr<SbatchJob> MapSbatch(const SbatchSubmission& submission, const SbatchPlace& place);

// The remedy for an option that MapSbatch refuses whatever its value is; empty if it takes the
// option.
std::string WhyRefused(const Option& option);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_
