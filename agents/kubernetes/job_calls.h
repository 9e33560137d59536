// The calls to the API server about one run, and what their answers mean for it.
#ifndef MUSTER_AGENTS_KUBERNETES_JOB_CALLS_H_
#define MUSTER_AGENTS_KUBERNETES_JOB_CALLS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/cluster/access.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/failures.h"

namespace muster::kubernetes {

// Holds the result of a call: nothing if it did what it should; else how the launch ends.
using LaunchEnd = std::optional<agents::LaunchOutcome>;

// Rights, room and queues come back after seconds or minutes, and a try costs few calls.
inline constexpr absl::Duration kRetryAfter = absl::Seconds(5);

v1::Evidence MakeEvidence(std::string detail);
agents::LaunchOutcome RefusedAs(v1::FailureCode code, v1::FailureClass failure_class,
                                const contract::FailureParts& parts);
agents::LaunchOutcome UnclearBecause(const absl::Status& status);
// Nothing was made of the run; it is launched again after kRetryAfter.
agents::LaunchOutcome DeferredBecause(const absl::Status& status);
// Returns the end of a launch by an answer other than success: refused in the server's words, or
// unclear if the server itself was in trouble, which says nothing of the run.
agents::LaunchOutcome EndOf(const ApiAnswer& answer, std::string_view what);

struct OwnedObject;  // what a Job owns

class JobCalls {
 public:
  // Receives the objects that the launch of that run cannot make, because the agent's account lacks
  // a right or the namespace is not there, and the server's words. Returns why the run waits.
  using OnShut =
      std::function<absl::Status(const std::string& run_key, Access what, const absl::Status& why)>;

  // `api` must outlive this object.
  JobCalls(Api* api, OnShut on_shut) : api_(*api), on_shut_(std::move(on_shut)) {}

  // Makes the run's Job, or finds an earlier call's, and tells which. A Job of that name that is
  // another's ends the launch, and so does a server that leaves out what decides about its success.
  LaunchEnd CreateJob(const RunObjects& objects, JobObject* job, bool* is_new);
  // Creates an object that the Job owns. An object of that name that is there already comes from
  // the launch that made the Job, which was cut short; it has what the Job was made for, and stays.
  // Before a new Job the run had no such object: one that is there is another's, and ends the
  // launch. It cannot be looked at without the right to read all Secrets.
  LaunchEnd CreateOwned(const RunObjects& objects, const JobObject& job, bool is_new);

  // Returns the Job of that name; nothing if the server has none. Errors: it could not be asked.
  absl::StatusOr<std::optional<JobObject>> FindJob(const std::string& name_space,
                                                   const std::string& name);
  // Returns the run's Job; nothing if the server has none, or one that belongs to another.
  absl::StatusOr<std::optional<JobObject>> FindRun(const std::string& name_space,
                                                   const std::string& run_key);
  // Returns the run's pods that the server has now. Errors: it could not be asked.
  absl::StatusOr<std::vector<PodObject>> ListPods(const std::string& name_space,
                                                  const std::string& run_key);
  // Sends a merge patch. NOT_FOUND: it is gone, or another one. ABORTED: another change came
  // between. UNAVAILABLE: the connection broke, and nobody knows. INVALID_ARGUMENT: the server, or
  // an admission hook there, will never take it.
  absl::StatusOr<JobObject> PatchJob(const ObjectName& job, const Json& patch);
  // Deletes it with its pods, which have their grace. OK as well if it is gone, or another.
  absl::Status DeleteJob(const ObjectName& job);
  // Returns the words with which the server would refuse the Job, or what it owns; nothing: it
  // would take them all. None is made. Errors: it could not be asked, or takes none there for now.
  absl::StatusOr<std::optional<std::string>> Try(const RunObjects& objects);

 private:
  LaunchEnd CheckSuccessPolicy(const RunObjects& objects, const JobObject& job);
  LaunchEnd CreateOne(const OwnedObject& owned, const JobObject& job, bool is_new);
  // Returns the outcome of a launch after that refusal of a thing that its run needs.
  agents::LaunchOutcome Refused(const ApiAnswer& answer, const std::string& what,
                                const std::string& run_key, Access needed);

  Api& api_;
  const OnShut on_shut_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_JOB_CALLS_H_
