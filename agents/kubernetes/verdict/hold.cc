#include "agents/kubernetes/verdict/hold.h"

#include <algorithm>

#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/explain_failure.h"

namespace muster::kubernetes {
namespace {

bool IsBeingDeleted(const PodObject& pod) { return pod.deletion_time.has_value(); }

bool HasNode(const PodObject& pod) { return !pod.node.empty() && !IsBeingDeleted(pod); }

bool FoundNoNode(const PodObject& pod) {
  return pod.node.empty() && !IsBeingDeleted(pod) && FindUnscheduled(pod) != nullptr;
}

// A pod without a node is gone with its deletion.
bool MayYetTell(const PodObject& pod) {
  return !pod.HasEnded() && (!pod.node.empty() || !IsBeingDeleted(pod));
}

}  // namespace

HoldAdvice AdviseHold(const JobObject& job, const std::vector<PodObject>& pods, size_t wanted,
                      absl::Duration waited) {
  // A Job that others have suspended is theirs; it has to be taken back from a queue.
  if (job.is_suspended) return {IsInQueue(job) ? HoldStep::kNow : HoldStep::kNone};
  const auto placed = std::find_if(pods.begin(), pods.end(), HasNode);
  if (placed != pods.end()) {
    return {HoldStep::kTooLate, "its pod " + placed->name.name + " has the node " + placed->node};
  }
  if (!job.queue.empty()) {
    return {HoldStep::kLater,
            "Kueue has let it go, and it waits for nodes: it will be held if Kueue takes it back "
            "before it has them"};
  }
  const auto waiting = static_cast<size_t>(std::count_if(pods.begin(), pods.end(), FoundNoNode));
  if (waiting < wanted && waited < kHoldClearsUp) {
    return {HoldStep::kLater,
            "it was let go in that moment: it will be held if it finds no nodes at once"};
  }
  return {HoldStep::kNow};
}

HoldAdvice AdviseRelease(const JobObject& job, const std::vector<PodObject>& pods) {
  if (!job.is_suspended) return {};
  const auto pod = std::find_if(pods.begin(), pods.end(), MayYetTell);
  if (pod == pods.end()) return {HoldStep::kNow};
  const std::string where = pod->node.empty() ? "" : " on node " + pod->node;
  return {HoldStep::kLater, "its pod " + pod->name.name + " is still being taken away" + where};
}

}  // namespace muster::kubernetes
