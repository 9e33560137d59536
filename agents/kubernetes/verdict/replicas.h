// The pods of a run as `muster show` has them. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_REPLICAS_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_REPLICAS_H_

#include <vector>

#include "agents/kubernetes/objects/objects.h"
#include "muster/v1/job.pb.h"

namespace muster::kubernetes {

// Returns the first agents::kMaxReplicas, by rank. The issue of a pod that has not started is its
// StartTrouble; of another one, why the cluster takes it away, or how its container failed. `job`
// is theirs; null if not known.
std::vector<v1::Replica> MakeReplicas(const std::vector<PodObject>& pods,
                                      const std::vector<EventObject>& events, absl::Time now,
                                      const JobObject* job);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_REPLICAS_H_
