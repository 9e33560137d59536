// Decides what happens to a Job that no run wants any more. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_
#define MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_

#include "absl/time/time.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

// A launch counts as abandoned when no agent has resumed it for this long: a restart of the agent,
// or the restore of a journal, takes minutes.
inline constexpr absl::Duration kAbandonedAfter = absl::Hours(1);

enum class CleanUp {
  kNothing,          // it goes by itself, or it is too early
  kDelete,           // an abandoned launch, or a Job of which everything is known
  kLowerTimeToLive,  // it has ended, and Kubernetes would keep it for days
  kTell,             // it may be running, and only people know whose it is
};

// `was_let_go`: the broker has the run's end and its logs. Otherwise this agent knows no run of the
// Job.
CleanUp CleanUpOf(const JobObject& job, bool was_let_go, absl::Time now);

// A Job that nobody wants, and what is due.
struct Leftover {
  JobObject job;
  CleanUp due = CleanUp::kNothing;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_
