// Jobs, pods and Events as far as runs need them. Small: thousands are kept.
//
// Sources: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/ and
// .../pod-v1/, https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_OBJECTS_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_OBJECTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/objects/end_record.h"

namespace muster::kubernetes {

// Every object of Muster's has this label, so that one watch sees them all and a sweep finds
// leftovers.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedByMuster[] = "muster";
inline constexpr char kRunLabel[] = "muster.dev/run-key";
// "complete" once the Job has all that it needs and may start: what comes before is half a launch.
inline constexpr char kLaunchAnnotation[] = "muster.dev/launch";
inline constexpr char kLaunchComplete[] = "complete";
// The time that Kubernetes is to keep the Job once the broker has its end and its logs, in seconds.
inline constexpr char kTimeToLiveAnnotation[] = "muster.dev/time-to-live";
// The label by which Kueue finds its Jobs.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
// This has the indexes whose success is the run's, with commas between them: what a Job says of its
// success policy goes with its template, and is not kept.
inline constexpr char kLeadingAnnotation[] = "muster.dev/leading-indexes";

// "true" of a Job that Muster itself has suspended after it had been let go: others do that as
// well.
inline constexpr char kHeldAnnotation[] = "muster.dev/held";

struct ObjectName {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
  // From its label; empty if it is no run's.
  std::string run_key;
};

// One of an object's conditions that is True, or a pod's PodScheduled that is False.
struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;
  std::string message;
  std::optional<absl::Time> since;
};

struct JobObject {
  ObjectName name;
  bool is_suspended = false;
  bool is_launch_complete = false;
  // The time when it was first seen to be so; the object itself does not say.
  std::optional<absl::Time> launch_complete_since;
  bool is_held = false;  // suspended by Muster, see kHeldAnnotation
  // Kubernetes keeps it for this many seconds after its end; none means for ever.
  std::optional<int64_t> time_to_live;
  std::optional<int64_t> final_time_to_live;  // of kTimeToLiveAnnotation; none: not known
  std::optional<absl::Time> created;
  uint32_t completions = 0;  // its pods; 0: not known
  std::string queue;         // of Kueue's, from its label; empty: none
  // True if some of its pods alone decide about its success; unknown if a watch tells of it.
  bool has_success_policy = false;
  // Their indexes, from kLeadingAnnotation; empty means all.
  std::vector<uint32_t> leading;
  std::optional<absl::Time> deletion_time;  // somebody has deleted it, and its pods are ending
  std::optional<absl::Time> start_time;
  std::vector<Condition> conditions;

  // Returns the condition of this type if it is true; else null.
  const Condition* Find(const char* type) const;
  // True if Kubernetes has told its end.
  bool HasEnded() const { return Find("Complete") != nullptr || Find("Failed") != nullptr; }
};

enum class ContainerState { kWaiting, kRunning, kTerminated };

struct ContainerObject {
  std::string name;
  bool is_init = false;
  ContainerState state = ContainerState::kWaiting;
  // Waiting and terminated: "ImagePullBackOff", "OOMKilled", and words; may be empty.
  std::string reason;
  std::string message;
  // Terminated: what our scripts say of it, which is not part of the message.
  std::vector<EndRecord> records;
  int exit_code = 0;  // terminated
  int signal = 0;     // terminated; many runtimes say 128 + signal as the code instead
  int restarts = 0;
  uint64_t memory_limit_bytes = 0;  // 0: it has none
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
};

struct PodObject {
  ObjectName name;
  std::string job_uid;  // of the Job that owns it
  uint32_t index = 0;   // its rank
  std::string node;     // empty: none yet
  std::string phase;    // Pending, Running, Succeeded, Failed, Unknown
  std::string reason;   // "Evicted", "NodeLost"; may be empty
  std::string message;
  std::optional<absl::Time> created;
  // The time when its deletion was asked for; it may end as late as its grace after that.
  std::optional<absl::Time> deletion_time;
  absl::Duration deletion_grace;
  std::vector<Condition> conditions;
  std::vector<ContainerObject> containers;  // init containers first
  // The time since which a container of it has been seen to wait for a reason that keeps it from
  // starting, by the agent's clock: the API server does not say.
  std::optional<absl::Time> waiting_since;
  bool is_gone = false;  // the API server has it no more

  const Condition* Find(const char* type) const;
  bool HasEnded() const { return phase == "Succeeded" || phase == "Failed"; }
};

struct EventObject {
  std::string uid;     // its own
  std::string object;  // name of the Job or pod that it is about
  std::string object_uid;
  bool is_warning = false;
  std::string reason;
  std::string message;
  // The same again and again is one Event.
  std::optional<absl::Time> first_seen;
  std::optional<absl::Time> last_seen;
};

// Keeps the part of an object that these read, and of its spec only the plain fields and the limits
// of its containers: most of a Job or a pod is its template or its containers, many times as large
// in memory as all that is kept of it.
Json TrimObject(const Json& object);

JobObject ParseJob(const Json& object);
PodObject ParsePod(const Json& object);
EventObject ParseEvent(const Json& object);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_OBJECTS_H_
