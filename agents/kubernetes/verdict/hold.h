// Whether a Job that was let go may be suspended for a hold, or resumed after one, so that what is
// told of it is true: no program begins in what is held, and none is ended by the hold. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

enum class HoldStep {
  kNone,   // there is nothing to do: it is so, it is too late, or it is not Muster's to change
  kNow,    // the Job is to be changed
  kLater,  // not as its pods are now
};

struct HoldAdvice {
  HoldStep step = HoldStep::kNone;
  std::string why = {};  // why later
};

// Of a run that is to be held. `wanted`: the pods that it is to have.
// Its Job is suspended only once all of them are there and the scheduler has said of each that it
// found no node: before that a node may have the first of them any moment, and what a Job
// controller that is behind would still make of them nobody can know.
HoldAdvice AdviseHold(const JobObject& job, const std::vector<PodObject>& pods, size_t wanted);

// Of a run that is held and is to go on: not before its nodes have said what became of the pods
// that the hold took away, for a program may have begun in them.
HoldAdvice AdviseRelease(const JobObject& job, const std::vector<PodObject>& pods);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_HOLD_H_
