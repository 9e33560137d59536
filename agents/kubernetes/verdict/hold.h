// Decides whether a Job that was let go may be suspended for a hold, or resumed after one, so that
// the reported hold is true: no program begins in a held run, and none is ended by the hold. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

enum class HoldStep {
  kNone,     // there is nothing to do: it is so, or it is not Muster's to change
  kNow,      // the Job is to be changed
  kLater,    // not as its pods are now
  kTooLate,  // a program may begin any moment
};

struct HoldAdvice {
  HoldStep step = HoldStep::kNone;
  std::string why = {};  // why later, or too late
};

// The time that a hold waits for the word of those who make pods and find nodes for them: they take
// a moment, unless they are away, or cannot.
inline constexpr absl::Duration kHoldClearsUp = absl::Seconds(10);

// Advises about a run that is to be held. `wanted` are the pods that it is to have; `waited` says
// since when that has been wished. Its Job is suspended once all of its pods are there and the
// scheduler has said of each that it found no node, or after kHoldClearsUp. Before that a node may
// have the first of them at any moment, and nobody can know what a Job controller that is behind
// would still make of them.
HoldAdvice AdviseHold(const JobObject& job, const std::vector<PodObject>& pods, size_t wanted,
                      absl::Duration waited);

// Advises about a run that is held and is to go on: it waits until all pods that the hold takes
// away have gone, and their nodes have said what became of them: a program may have begun there.
HoldAdvice AdviseRelease(const JobObject& job, const std::vector<PodObject>& pods);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_
