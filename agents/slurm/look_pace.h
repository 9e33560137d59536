// Computes when to look at the queue next, while an end is awaited that Slurm has yet to tell.
//
// It is pure, and one thread at a time may use it.
#ifndef MUSTER_AGENTS_SLURM_LOOK_PACE_H_
#define MUSTER_AGENTS_SLURM_LOOK_PACE_H_

#include "absl/time/time.h"

namespace muster::slurm {

// The news that a run's end waits for, the nearest to it last.
enum class Awaits {
  kNothing,
  kCancel,   // Muster has asked Slurm to end the job
  kVerdict,  // the command has ended; Slurm has yet to say how the job did
};

class LookPace {
 public:
  // The first look after news. slurmctld takes some tenths of a second to end a job.
  static constexpr absl::Duration kSoon = absl::Milliseconds(300);

  // Something is awaited now that was not before.
  void Hurry() { interval_ = kSoon; }
  // Takes the outcome of a look at the runs. `awaits`: any of them awaits something. `asked`: Slurm
  // was asked. Without news the looks grow rarer by half: news that has not come soon may take
  // long.
  void Looked(bool awaits, bool asked);

  // Is infinite if nothing is awaited.
  absl::Duration interval() const { return interval_; }

 private:
  absl::Duration interval_ = absl::InfiniteDuration();
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_LOOK_PACE_H_
