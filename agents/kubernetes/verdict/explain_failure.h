// Explains why a Job has failed, and with which exit. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_EXPLAIN_FAILURE_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_EXPLAIN_FAILURE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/objects/objects.h"
#include "muster/v1/job.pb.h"

namespace muster::kubernetes {

// Describes the container that failed first, whose exit is the run's.
struct Culprit {
  const PodObject* pod = nullptr;              // null: none has failed
  const ContainerObject* container = nullptr;  // null: the pod failed without one that did
  // The Job controller ended it, because another one had failed before.
  bool was_stopped = false;

  absl::Time end() const;  // infinite future: not known
};

// Among `pods`, which outlive what is returned. The times are those of `job`'s conditions.
Culprit FindCulprit(const JobObject& job, const std::vector<PodObject>& pods);

struct Ending {
  v1::Failure failure;
  std::optional<v1::ExitStatus> exit;
};

// `failed` is the Job's condition, `pods` what is known of its pods, ended or not.
Ending ExplainFailure(const JobObject& job, const Condition& failed,
                      const std::vector<PodObject>& pods);

// Returns who told a pod to stop, for a Job whose pods have all ended with 0: the 0 may be the
// answer to that, and the pod's work is not done; nothing if they have ended by themselves.
std::optional<v1::Failure> ExplainStop(const JobObject& job, const std::vector<PodObject>& pods);

// Explains a run whose pods were ended by whoever suspended its Job. `words` tell of it; the caller
// names the object.
v1::Failure ExplainSuspension(const JobObject& job, const std::string& words);

// Returns whether a container of it has started that is no init container.
bool HasStarted(const PodObject& pod);

// Returns the words of a scheduler that has looked for a node for the pod and found none; null if
// none has.
const Condition* FindUnscheduled(const PodObject& pod);

// Returns whether its node lacks it now, or never had it: its exit code is one that the kubelet
// made up. Source: convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go of Kubernetes.
bool IsLost(const ContainerObject& container);

// Returns the last end of the pod's containers; infinite future if not all have one.
absl::Time EndOf(const PodObject& pod);

// Returns "pod NAME (resourceVersion 9) on node-1: what".
std::string PodWords(const PodObject& pod, std::string_view what);
std::string JobWords(const JobObject& job, std::string_view what);
// Returns "Job lab/k7m2-42-1". The evidence has its version.
std::string NameOf(const JobObject& job);
// Says which pod failed, and writes the sentence with that.
void NamePod(const PodObject& pod, v1::Failure* failure);
// Returns "reason: message", or the one of the two that is not empty.
std::string Joined(const std::string& reason, const std::string& message);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_EXPLAIN_FAILURE_H_
