// Slurm's words for the state of a job.
#ifndef MUSTER_AGENTS_SLURM_STATES_H_
#define MUSTER_AGENTS_SLURM_STATES_H_

#include <string>
#include <string_view>

namespace muster::slurm {

enum class JobPhase {
  kUnknown,  // a word that we do not know: neither gone nor ended
  kPending,
  kStarting,
  kRunning,
  kSuspended,
  kCompleting,  // the outcome is decided and not told yet
  // Ended. A requeue can still bring the job back under the same id.
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kOutOfMemory,
  kNodeFail,
  kBootFail,
  kPreempted,
  kDeadline,
  kRevoked,
};

struct SlurmState {
  JobPhase phase = JobPhase::kUnknown;
  std::string word;          // Slurm's own, e.g. "CANCELLED"
  std::string cancelled_by;  // the uid in "CANCELLED by 1001", or a name; empty: not told
};

// Reads squeue's %T, sacct's State or scontrol's JobState: "RUNNING", "CANCELLED by 1001",
// "CANCELLED+" (cut off by a narrow column).
SlurmState ParseState(std::string_view text);

bool HasEnded(JobPhase phase);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_STATES_H_
