#include "agents/kubernetes/job_calls.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/core/launch_refusal.h"
#include "agents/core/proto_time.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using agents::LaunchOutcome;

// The API server itself gives up after 60 s (--request-timeout).
constexpr absl::Duration kWriteTimeout = absl::Seconds(70);
constexpr absl::Duration kReadTimeout = absl::Seconds(30);

std::string JobsOf(const std::string& name_space) {
  return "/apis/batch/v1/namespaces/" + Escape(name_space) + "/jobs";
}

std::string JobPath(const ObjectName& job) {
  return JobsOf(job.name_space) + "/" + Escape(job.name);
}

// Recognises a quota that is full, or whose count was changed by another call meanwhile, and a
// server that has just started.
bool IsPassing(const ApiAnswer& answer) {
  if (answer.message.find("not yet ready") != std::string::npos) return true;
  return (answer.status == 403 && answer.message.find("exceeded quota") != std::string::npos) ||
         (answer.status == 409 && answer.reason == "Conflict");
}

// With 408 and 429 it is too busy, with 401 and 5xx in trouble. It says nothing of the run, and may
// be another answer the next time.
bool MayPass(const ApiAnswer& answer) {
  if (answer.IsDenied()) return false;
  return answer.status >= 500 || answer.status == 401 || answer.status == 408 ||
         answer.status == 429 || IsPassing(answer);
}

// A connection that broke says nothing of the object, unlike a change that came between.
absl::Status Unheard(const absl::Status& status) {
  return absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status;
}

// Not that a kind of objects is not there.
bool IsNamespaceGone(const ApiAnswer& answer) {
  return (answer.status == 404 && answer.message.starts_with("namespaces \"")) ||
         answer.message.find("because it is being terminated") != std::string::npos;
}

Access CreationOf(const std::string& group, const char* resource, const std::string& name_space) {
  return {.verb = "create", .group = group, .resource = resource, .name_space = name_space};
}

}  // namespace

struct OwnedObject {
  std::string collection;  // where it is made
  const Json* object;
  Access creation;
};

namespace {

// The Secret is the last: Kueue may have started the Job by then, and its pods wait for the Secret
// alone.
std::vector<OwnedObject> OwnedObjects(const RunObjects& objects) {
  const std::string& name_space = objects.name_space;
  const std::string of_namespace = "/namespaces/" + Escape(name_space);
  std::vector<OwnedObject> owned;
  if (objects.service.has_value()) {
    owned.push_back({"/api/v1" + of_namespace + "/services", &*objects.service,
                     CreationOf("", "services", name_space)});
  }
  if (objects.pod_group.has_value()) {
    const std::string version = TextAt(*objects.pod_group, "apiVersion");
    owned.push_back({"/apis/" + version + of_namespace + "/podgroups", &*objects.pod_group,
                     CreationOf(version.substr(0, version.find('/')), "podgroups", name_space)});
  }
  const std::string secrets = "/api/v1" + of_namespace + "/secrets";
  for (const Json& part : objects.file_secrets)
    owned.push_back({secrets, &part, CreationOf("", "secrets", name_space)});
  owned.push_back({secrets, &objects.secret, CreationOf("", "secrets", name_space)});
  return owned;
}

}  // namespace

v1::Evidence MakeEvidence(std::string detail) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_POD);
  *evidence.mutable_observed_at() = agents::ToProto(absl::Now());
  evidence.set_detail(std::move(detail));
  return evidence;
}

LaunchOutcome RefusedAs(v1::FailureCode code, v1::FailureClass failure_class,
                        const contract::FailureParts& parts) {
  return agents::RefusedAs(contract::MakeFailure(code, failure_class, parts), MakeEvidence(""));
}

LaunchOutcome UnclearBecause(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kUnclear;
  outcome.evidence = MakeEvidence(std::string(ToStd(status.message())));
  return outcome;
}

LaunchOutcome DeferredBecause(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.retry_after = kRetryAfter;
  outcome.evidence = MakeEvidence(std::string(ToStd(status.message())));
  return outcome;
}

LaunchOutcome EndOf(const ApiAnswer& answer, std::string_view what) {
  const absl::Status status = RefusalOf(answer, what);
  const std::string words(ToStd(status.message()));
  // A later look-up of the run tells more.
  if (MayPass(answer)) return UnclearBecause(status);
  return RefusedAs(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG, {.detail = words});
}

LaunchOutcome JobCalls::Refused(const ApiAnswer& answer, const std::string& what,
                                const std::string& run_key, Access needed) {
  const bool is_shut = (answer.IsRbac() || IsNamespaceGone(answer)) && !answer.IsDenied();
  if (!is_shut) return EndOf(answer, what);
  const bool is_unmade = needed.resource == kJobs;
  const absl::Status why = on_shut_(run_key, std::move(needed), RefusalOf(answer, what));
  return is_unmade ? DeferredBecause(why) : UnclearBecause(why);
}

LaunchEnd JobCalls::CreateJob(const RunObjects& objects, JobObject* job, bool* is_new) {
  const std::string what = fmt::format("create Job {}/{}", objects.name_space, objects.name);
  const absl::StatusOr<ApiAnswer> answer = api_.Call({.method = "POST",
                                                      .path = JobsOf(objects.name_space),
                                                      .body = objects.job,
                                                      .timeout = kWriteTimeout});
  if (!answer.ok()) return UnclearBecause(answer.status());
  *is_new = answer->ok();
  if (answer->ok()) {
    *job = ParseJob(answer->body);
    return CheckSuccessPolicy(objects, *job);
  }
  if (answer->status != 409 || answer->reason != "AlreadyExists") {
    return Refused(*answer, what, objects.name, CreationOf("batch", kJobs, objects.name_space));
  }
  absl::StatusOr<std::optional<JobObject>> present = FindJob(objects.name_space, objects.name);
  if (!present.ok()) return UnclearBecause(present.status());
  // It went while it was asked for.
  if (!present->has_value()) return UnclearBecause(RefusalOf(*answer, what));
  if ((*present)->name.run_key != objects.name) {
    return RefusedAs(v1::FAILURE_CODE_NAME_TAKEN, v1::FAILURE_CLASS_INFRA,
                     {.subject = fmt::format("Job {}/{}", objects.name_space, objects.name),
                      .meaning = fmt::format("{}: a Job of that name is there, and is none of "
                                             "Muster's (it lacks the label {}={})",
                                             what, kRunLabel, objects.name)});
  }
  *job = **std::move(present);
  return CheckSuccessPolicy(objects, *job);
}

LaunchEnd JobCalls::CheckSuccessPolicy(const RunObjects& objects, const JobObject& job) {
  if (!objects.job.at("spec").contains("successPolicy") || job.has_success_policy)
    return std::nullopt;
  // It is suspended, and the sweep finds it if this fails.
  (void)DeleteJob(job.name);
  return RefusedAs(
      v1::FAILURE_CODE_DOES_NOT_FIT, v1::FAILURE_CLASS_CONFIG,
      {.subject = "roles",
       .meaning = "roles: one of them leads, and the API server has left out the Job's success "
                  "policy, which Kubernetes has since 1.31",
       .cause = contract::FailureCause::kRolesLead});
}

LaunchEnd JobCalls::CreateOwned(const RunObjects& objects, const JobObject& job, bool is_new) {
  for (const OwnedObject& owned : OwnedObjects(objects)) {
    if (LaunchEnd end = CreateOne(owned, job, is_new)) return end;
  }
  return std::nullopt;
}

LaunchEnd JobCalls::CreateOne(const OwnedObject& owned, const JobObject& job, bool is_new) {
  const Json object = OwnedBy(*owned.object, job.name.name, job.name.uid);
  const std::string kind = TextAt(object, "kind");
  const std::string name = job.name.name_space + "/" + TextAt(object, "metadata/name");
  const std::string what = fmt::format("create {} {}", kind, name);
  const absl::StatusOr<ApiAnswer> answer = api_.Call(
      {.method = "POST", .path = owned.collection, .body = object, .timeout = kWriteTimeout});
  if (!answer.ok()) return UnclearBecause(answer.status());
  if (answer->ok()) return std::nullopt;
  if (answer->status == 409 && answer->reason == "AlreadyExists") {
    if (!is_new || answer->was_sent_again) return std::nullopt;
    return RefusedAs(
        v1::FAILURE_CODE_NAME_TAKEN, v1::FAILURE_CLASS_INFRA,
        {.subject = fmt::format("{} {}", kind, name),
         .meaning = fmt::format("{}: a {} of that name is there, and is not this run's: it was "
                                "there before the run's Job was made",
                                what, kind)});
  }
  return Refused(*answer, what, job.name.run_key, owned.creation);
}

absl::StatusOr<std::optional<JobObject>> JobCalls::FindJob(const std::string& name_space,
                                                           const std::string& name) {
  const absl::StatusOr<ApiAnswer> answer =
      api_.Call({.path = JobsOf(name_space) + "/" + Escape(name), .timeout = kReadTimeout});
  if (!answer.ok()) return answer.status();
  if (answer->ok()) return std::optional<JobObject>(ParseJob(answer->body));
  // A proxy's 404 says nothing about the Job.
  if (answer->status == 404 && answer->reason == "NotFound") return std::optional<JobObject>();
  return RefusalOf(*answer, fmt::format("get Job {}/{}", name_space, name));
}

absl::StatusOr<std::optional<JobObject>> JobCalls::FindRun(const std::string& name_space,
                                                           const std::string& run_key) {
  absl::StatusOr<std::optional<JobObject>> job = FindJob(name_space, run_key);
  if (job.ok() && job->has_value() && (*job)->name.run_key != run_key) job->reset();
  return job;
}

absl::StatusOr<std::vector<PodObject>> JobCalls::ListPods(const std::string& name_space,
                                                          const std::string& run_key) {
  const absl::StatusOr<ApiAnswer> answer = api_.Call(
      {.path = fmt::format("/api/v1/namespaces/{}/pods?labelSelector={}", Escape(name_space),
                           Escape(fmt::format("{}={}", kRunLabel, run_key))),
       .timeout = kReadTimeout});
  if (!answer.ok()) return answer.status();
  if (!answer->ok()) return RefusalOf(*answer, "list the pods of " + run_key);
  std::vector<PodObject> pods;
  for (const Json& item : At(answer->body, "items")) pods.push_back(ParsePod(item));
  return pods;
}

absl::StatusOr<JobObject> JobCalls::PatchJob(const ObjectName& job, const Json& patch) {
  const absl::StatusOr<ApiAnswer> answer =
      api_.Call({.method = "PATCH",
                 .path = JobPath(job),
                 .body = patch,
                 .content_type = "application/merge-patch+json",
                 .timeout = kWriteTimeout});
  if (!answer.ok()) return Unheard(answer.status());
  if (answer->ok()) return ParseJob(answer->body);
  // The uid is not the Job's, and the server takes that for a change of what cannot be changed.
  if (answer->status == 422 && answer->message.find("metadata.uid") != std::string::npos)
    return absl::NotFoundError("the Job of that name is another one");
  const absl::Status refusal =
      RefusalOf(*answer, fmt::format("patch Job {}/{}", job.name_space, job.name));
  return answer->IsDenied() ? absl::InvalidArgumentError(refusal.message()) : refusal;
}

absl::Status JobCalls::DeleteJob(const ObjectName& job) {
  const absl::StatusOr<ApiAnswer> answer =
      api_.Call({.method = "DELETE",
                 .path = JobPath(job),
                 .body = {{"kind", "DeleteOptions"},
                          {"apiVersion", "v1"},
                          {"propagationPolicy", "Foreground"},
                          {"preconditions", {{"uid", job.uid}}}},
                 .timeout = kWriteTimeout});
  if (!answer.ok()) return Unheard(answer.status());
  if (answer->ok() || answer->status == 404 || answer->status == 409) return absl::OkStatus();
  return RefusalOf(*answer, fmt::format("delete Job {}/{}", job.name_space, job.name));
}

absl::StatusOr<std::optional<std::string>> JobCalls::Try(const RunObjects& objects) {
  std::vector<OwnedObject> wanted = OwnedObjects(objects);
  wanted.insert(wanted.begin(), {JobsOf(objects.name_space), &objects.job, {}});
  for (const auto& [collection, object, creation] : wanted) {
    const absl::StatusOr<ApiAnswer> answer = api_.Call({.method = "POST",
                                                        .path = collection + "?dryRun=All",
                                                        .body = *object,
                                                        .timeout = kReadTimeout});
    if (!answer.ok()) return answer.status();
    if (answer->ok()) continue;
    const absl::Status refusal =
        RefusalOf(*answer, fmt::format("create the {}", TextAt(*object, "kind")));
    // The namespace takes no runs now, and jobs wait for it.
    const bool is_shut = answer->IsRbac() || (object == &objects.job && IsNamespaceGone(*answer));
    if (MayPass(*answer) || is_shut) return refusal;
    return std::string(ToStd(refusal.message()));
  }
  return std::nullopt;
}

}  // namespace muster::kubernetes
