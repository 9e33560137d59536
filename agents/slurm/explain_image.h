// Explains why a run's container could not be started, from the exit record and the output of Pyxis
// and enroot.
#ifndef MUSTER_AGENTS_SLURM_EXPLAIN_IMAGE_H_
#define MUSTER_AGENTS_SLURM_EXPLAIN_IMAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "agents/slurm/exit_record.h"
#include "agents/slurm/states.h"
#include "contract/failure_causes.h"
#include "muster/v1/job.pb.h"

namespace muster::slurm {

struct ImageTrouble {
  v1::FailureCode code = v1::FAILURE_CODE_CONTAINER_NOT_STARTED;
  v1::FailureClass failure_class = v1::FAILURE_CLASS_IMAGE;
  std::string meaning;  // empty: the code says it
  contract::FailureCause cause = contract::FailureCause::kNone;
  // True if the registry, the network or the cluster was at fault, and another try may do better.
  bool retriable = false;
  // The words of enroot, Pyxis or Slurm about it, a few lines at most, without the names in front.
  std::vector<std::string> words;
};

// `output` is what Slurm wrote into the batch script's output since the job's last start, `cause`
// that of the exit record. `conversion` says how Slurm ended the job that converted the image, if
// it does; a job that was stopped could not write that down itself.
ImageTrouble ExplainImage(std::string_view output,
                          ExitRecord::Cause cause = ExitRecord::Cause::kNone,
                          JobPhase conversion = JobPhase::kUnknown);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_EXPLAIN_IMAGE_H_
