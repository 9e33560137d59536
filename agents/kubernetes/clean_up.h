// Decides what happens to a Job that no run wants any more. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_
#define MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_

#include "absl/time/time.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

// The time in which no agent may have resumed a launch that an agent has left: agents that are
// started anew, and journals that are restored, need minutes.
inline constexpr absl::Duration kAbandonedAfter = absl::Hours(1);

enum class CleanUp {
  kNothing,          // it goes by itself, or it is too early
  kDelete,           // half a launch, or all there is to know of it is known
  kLowerTimeToLive,  // it has ended, and Kubernetes would keep it for days
  kTell,             // it may be running: whose it is only people know
};

// `was_let_go`: the broker has its end and its logs. Otherwise this agent knows no run of it.
CleanUp CleanUpOf(const JobObject& job, bool was_let_go, absl::Time now);

// A Job that nobody wants, and what is due.
struct Leftover {
  JobObject job;
  CleanUp due = CleanUp::kNothing;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLEAN_UP_H_
