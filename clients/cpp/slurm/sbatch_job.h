// A batch script as a job: what it asks for in Muster's words, and what ties it to Slurm. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/slurm/sbatch_script.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

struct SbatchJob {
  // The command is the script; resources are those of one node. Its slurm section is there only if
  // an option needs it.
  v1::JobSpec spec;
  // What keeps the job from running anywhere but on Slurm, each as it was written and where:
  // "--array=1-9 (line 3)". Empty: any kind of cluster may run it.
  std::vector<std::string> slurm_only;
  // What is otherwise than with sbatch, a sentence each.
  std::vector<std::string> notes;
  // Where sbatch would write, with patterns (ExpandFileName). Empty error: where the output goes.
  std::string output = "slurm-%j.out";
  std::string error;
};

// INVALID_ARGUMENT names the option, its value and where it was, if the value cannot be read; or
// two options that exclude each other, such as --mem and --mem-per-cpu.
//
// sbatch starts a script once, on the first node of the allocation, Muster a command on each node:
// a script that asks for several nodes, or for several tasks without saying that they fit on one,
// is tied to Slurm.
absl::StatusOr<SbatchJob> MapSbatch(const SbatchSubmission& submission);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_JOB_H_
