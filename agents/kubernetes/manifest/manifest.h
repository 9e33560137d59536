// Makes the objects of a run on a Kubernetes cluster. Pure.
//
// The Job is made suspended, then what it owns, and then it is let go; so nothing of a run whose
// launch was cut short can start, and nothing is left over once its Job is gone.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_MANIFEST_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_MANIFEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/objects/objects.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// The run's identity is on all of its objects: labels for kJobLabel and kInstanceLabel, annotations
// for what a label's value may not hold.
inline constexpr char kInstanceLabel[] = "muster.dev/instance";
inline constexpr char kJobLabel[] = "muster.dev/job";
inline constexpr char kRunNumberLabel[] = "muster.dev/run";
inline constexpr char kProjectLabel[] = "muster.dev/project";
inline constexpr char kUserAnnotation[] = "muster.dev/user";
inline constexpr char kNameAnnotation[] = "muster.dev/job-name";
// The container that runs setup and command.
inline constexpr char kMainContainer[] = "main";
// The one before it that looks whether the run's data is there, and unpacks what the job brings
// along; only of runs that have some.
inline constexpr char kStorageContainer[] = "storage";
// The time for jobs without kubernetes.time_to_live.
inline constexpr int64_t kDefaultTimeToLiveSeconds = 3600;

// NOLINTNEXTLINE(bugprone-exception-escape): Json's moves throw nothing, only seen deep inside it.
struct RunObjects {
  std::string name_space;
  // The name of all of them, which is the run key.
  std::string name;
  Json job;  // batch/v1, suspended
  // The data that the container needs to start: its script, the user's, the environment. v1.
  Json secret;
  // The archive of what the job brings along, a part in each. v1.
  std::vector<Json> file_secrets;
  // By it pods find each other by name, headless; for runs of several nodes. v1.
  std::optional<Json> service;
  // The object of the coscheduling plug-in: scheduling.x-k8s.io/v1alpha1. Only for runs that ask
  // for it.
  std::optional<Json> pod_group;
};

// `default_namespace` is for runs that name none. The assignment is valid and has its defaults.
// `file_parts`: the archive of what it brings along. INVALID_ARGUMENT: the cluster cannot run it;
// names the field and the remedy.
absl::StatusOr<RunObjects> MakeObjects(const agent::v1::Assignment& assignment,
                                       const KubernetesConfig& config,
                                       const std::string& default_namespace,
                                       const std::vector<std::string>& file_parts = {});

// Returns the namespace of the run's objects.
std::string NamespaceOf(const v1::JobSpec& spec, const std::string& default_namespace);

// Returns the object, which goes when the Job does.
Json OwnedBy(Json object, const std::string& job_name, const std::string& job_uid);

// JSON merge patches of a Job. Each is refused as invalid (422: metadata.uid is immutable) if the
// Job is not the one of this uid.

// The Job has all that it needs, and no hold keeps it; whether it may start stays as it is.
Json CompletePatch(const std::string& uid);
// The Job has all that it needs: lets it start, or has its queue do so.
Json LaunchPatch(const std::string& uid, const agent::v1::Assignment& assignment);
// Takes a Job that was let go back: it is as before its launch patch, suspended, and out of the
// queue of Kueue's that it may be in. Refused (409) if the Job has changed since it was seen so: a
// program may have begun.
Json HoldPatch(const JobObject& job);
// Names another queue of Kueue's, which a suspended Job may change (kueue:
// pkg/controller/jobframework/validation.go). Empty: none, which Kueue refuses where there is a
// default queue.
Json QueuePatch(const std::string& uid, const std::string& queue);
// Returns the patch that sets the time for which Kubernetes keeps the Job once it has ended.
Json TimeToLivePatch(const std::string& uid, int64_t seconds);

// Returns the job's kubernetes.time_to_live, or else its default. Seconds.
int64_t TimeToLiveSeconds(const v1::JobSpec& spec);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_MANIFEST_H_
