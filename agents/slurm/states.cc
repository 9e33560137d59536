#include "agents/slurm/states.h"

#include <array>

namespace muster::slurm {
namespace {

struct Word {
  std::string_view text;
  JobPhase phase;
};

// Base states, then flags that are shown in place of them. Source: squeue(1), JOB STATE CODES.
constexpr std::array kWords = {
    Word{"PENDING", JobPhase::kPending},
    Word{"RUNNING", JobPhase::kRunning},
    Word{"SUSPENDED", JobPhase::kSuspended},
    Word{"COMPLETED", JobPhase::kCompleted},
    Word{"CANCELLED", JobPhase::kCancelled},
    Word{"FAILED", JobPhase::kFailed},
    Word{"TIMEOUT", JobPhase::kTimeout},
    Word{"NODE_FAIL", JobPhase::kNodeFail},
    Word{"PREEMPTED", JobPhase::kPreempted},
    Word{"BOOT_FAIL", JobPhase::kBootFail},
    Word{"DEADLINE", JobPhase::kDeadline},
    Word{"OUT_OF_MEMORY", JobPhase::kOutOfMemory},
    Word{"REVOKED", JobPhase::kRevoked},
    Word{"COMPLETING", JobPhase::kCompleting},
    Word{"STAGE_OUT", JobPhase::kCompleting},
    Word{"CONFIGURING", JobPhase::kStarting},
    Word{"RESIZING", JobPhase::kRunning},
    Word{"SIGNALING", JobPhase::kRunning},
    Word{"STOPPED", JobPhase::kSuspended},
    Word{"REQUEUED", JobPhase::kPending},
    Word{"REQUEUE_FED", JobPhase::kPending},
    Word{"REQUEUE_HOLD", JobPhase::kPending},
    Word{"SPECIAL_EXIT", JobPhase::kPending},
    Word{"RESV_DEL_HOLD", JobPhase::kPending},
    // Shown by newer versions and by slurmrestd: nodes that are being switched on, jobs that
    // slurmctld puts back or holds, and a flag that is about slurmdbd and not about the job.
    Word{"POWER_UP_NODE", JobPhase::kStarting},
    Word{"LAUNCH_FAILED", JobPhase::kPending},
    Word{"RECONFIG_FAIL", JobPhase::kPending},
    Word{"EXPEDITING", JobPhase::kPending},
    Word{"UPDATE_DB", JobPhase::kUnknown},
};

constexpr std::string_view kBy = " by ";

JobPhase PhaseOf(std::string_view word, bool cut) {
  for (const Word& known : kWords) {
    if (word == known.text) return known.phase;
  }
  if (!cut || word.empty()) return JobPhase::kUnknown;
  JobPhase found = JobPhase::kUnknown;
  for (const Word& known : kWords) {
    if (!known.text.starts_with(word)) continue;
    if (found != JobPhase::kUnknown) return JobPhase::kUnknown;
    found = known.phase;
  }
  return found;
}

}  // namespace

SlurmState ParseState(std::string_view text) {
  SlurmState state;
  std::string_view word = text.substr(0, text.find(' '));
  if (const size_t by = text.find(kBy); by != std::string_view::npos) {
    state.cancelled_by = text.substr(by + kBy.size());
  }
  const bool cut = word.ends_with('+');
  if (cut) word.remove_suffix(1);
  state.word = word;
  state.phase = PhaseOf(word, cut);
  return state;
}

bool HasEnded(JobPhase phase) { return phase >= JobPhase::kCompleted; }

}  // namespace muster::slurm
