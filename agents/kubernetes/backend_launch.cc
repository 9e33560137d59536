// Launches a run: makes the Job, suspended, and what it owns; then lets it go, once there is room
// for all of it.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "agents/core/job_storage.h"
#include "agents/files/fetch_tree.h"
#include "agents/files/shell_variables.h"
#include "agents/files/tar_stream.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/manifest/projects.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/explain_failure.h"
#include "contract/failures.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

using agents::LaunchOutcome;
using agents::LookupOutcome;

namespace {

// The tree of what a job brings along may take this time, while people wait for the answer about
// the job.
constexpr absl::Duration kAnswerPatience = absl::Seconds(2);

absl::Status CheckNamespace(const v1::JobSpec& spec, const KubernetesConfig& config) {
  const std::vector<std::string>& known = config.namespaces;
  const std::string wanted = NamespaceOf(spec, config.name_space);
  if (std::find(known.begin(), known.end(), wanted) != known.end()) return absl::OkStatus();
  const bool is_option = !spec.kubernetes().namespace_().empty();
  return absl::InvalidArgumentError(fmt::format(
      "{} is \"{}\"; the agent of this cluster works in {}: choose one of these or another "
      "cluster, or have the operator add it to the agent's setting kubernetes.namespaces",
      is_option ? "kubernetes.namespace" : "pool", wanted, fmt::join(known, ", ")));
}

// It says nothing of the one run that was asked for, nor whether that was done.
bool IsServersTrouble(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsInternal(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

LaunchEnd KubernetesBackend::TakeFileRoom(const std::string& run_key, const v1::JobSpec& spec) {
  const absl::StatusOr<v1::FileTree> tree =
      uploads::FetchTree(spec, config_.files->cache(), uploads::kFetchPatience);
  if (!tree.ok()) return uploads::NotLaunched(tree.status());
  if (const absl::Status good = CheckArchive(*tree); !good.ok()) {
    return RefusedAs(
        v1::FAILURE_CODE_FILES_NOT_TAKEN, v1::FAILURE_CLASS_CONFIG,
        {.detail = agents::WhatIsWrong(good), .cause = contract::FailureCause::kTooManyUploads});
  }
  const absl::Status room = file_room_.Take(run_key, uploads::TarBytes(*tree));
  if (!room.ok()) return DeferredBecause(room);
  return std::nullopt;
}

LaunchEnd KubernetesBackend::PackBroughtFiles(const std::string& run_key, const v1::JobSpec& spec,
                                              std::vector<std::string>* parts) {
  if (spec.uploads_size() == 0) return std::nullopt;
  if (config_.files == nullptr) {
    return RefusedAs(v1::FAILURE_CODE_FILES_NOT_TAKEN, v1::FAILURE_CLASS_CONFIG, {});
  }
  if (LaunchEnd end = TakeFileRoom(run_key, spec)) return end;
  const absl::StatusOr<uploads::LocalFiles> files = config_.files->Fetch(spec);
  if (!files.ok()) return uploads::NotLaunched(files.status());
  absl::StatusOr<std::vector<std::string>> packed = PackFiles(*files, config_.files->cache());
  if (!packed.ok()) return DeferredBecause(packed.status());
  *parts = *std::move(packed);
  return std::nullopt;
}

absl::StatusOr<std::optional<uint64_t>> KubernetesBackend::BroughtBytes(
    const v1::JobSpec& spec) const {
  if (spec.uploads_size() == 0 || config_.files == nullptr) return 0;
  const absl::StatusOr<v1::FileTree> tree =
      uploads::FetchTree(spec, config_.files->cache(), kAnswerPatience);
  // A failure of the broker to send files now says nothing about the job.
  if (!tree.ok()) return std::nullopt;
  if (absl::Status good = CheckArchive(*tree); !good.ok()) return good;
  return uploads::TarBytes(*tree);
}

absl::StatusOr<RunObjects> KubernetesBackend::Prepare(const agent::v1::Assignment& assignment,
                                                      const std::vector<std::string>& file_parts) {
  absl::StatusOr<agent::v1::Assignment> placed = InProject(assignment, config_);
  if (!placed.ok()) return placed.status();
  agent::v1::Assignment own = *std::move(placed);
  if (absl::Status good = CheckNamespace(own.spec(), config_); !good.ok()) return good;
  if (absl::Status good = CheckKeepsLease(own); !good.ok()) return good;
  if (absl::Status clear = view_.SpellGpuType(own.mutable_spec()); !clear.ok()) return clear;
  view_.FillResources(&own);
  if (const std::optional<std::string> refusal = view_.Refusal(own))
    return absl::InvalidArgumentError(*refusal);
  const std::string name_space = kubernetes::NamespaceOf(own.spec(), config_.name_space);
  const std::string missing = things_.FindMissing(own.spec(), name_space);
  const absl::Status good = queues_.Check(own.spec(), name_space);
  if (!missing.empty()) {
    const bool is_all = !absl::IsInvalidArgument(good);
    return absl::InvalidArgumentError(missing +
                                      (is_all ? "" : "; " + std::string(ToStd(good.message()))));
  }
  if (!good.ok()) return good;
  absl::StatusOr<RunObjects> objects = MakeObjects(own, config_, config_.name_space, file_parts);
  // Kueue would let it go at once from a default queue, without what it owns, or held.
  if (objects.ok() && own.spec().kubernetes().queue().empty() &&
      queues_.MayHaveDefaultQueue(name_space))
    objects->job["metadata"]["labels"][kQueueLabel] = kHeldQueue;
  return objects;
}

std::vector<LaunchOutcome> KubernetesBackend::Launch(const agents::Assignments& runs) {
  return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
}

LaunchOutcome KubernetesBackend::LaunchOne(const agent::v1::Assignment& assignment) {
  absl::StatusOr<agent::v1::Assignment> placed = InProject(assignment, config_);
  if (!placed.ok()) {
    return RefusedAs(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                     {.detail = agents::WhatIsWrong(placed.status())});
  }
  const auto run = std::make_shared<const agent::v1::Assignment>(*std::move(placed));
  queue_.Expect(run, assignment.held());
  LaunchOutcome outcome = LaunchInPlace(run);
  const bool is_refused = outcome.kind == LaunchOutcome::Kind::kRefused;
  const bool is_deferred = outcome.kind == LaunchOutcome::Kind::kDeferred;
  const bool is_forbidden =
      (is_deferred || outcome.kind == LaunchOutcome::Kind::kUnclear) &&
      HomeOf(kubernetes::NamespaceOf(run->spec(), config_.name_space)).is_forbidden();
  // The Job comes before its archive, and a Job that there is the watch tells of.
  if (is_refused || is_forbidden) file_room_.GiveBack(assignment.run_key());
  if (is_refused || is_forbidden || is_deferred) {
    queue_.Remove(assignment.run_key());
    Wake();  // those behind it
  }
  return outcome;
}

LaunchOutcome KubernetesBackend::LaunchInPlace(const StartQueue::AssignmentPtr& run) {
  const std::string& run_key = run->run_key();
  absl::StatusOr<agent::v1::Assignment> whole = uploads::WithShellVariables(*run, config_.files);
  if (!whole.ok()) return uploads::NotLaunched(whole.status());
  agent::v1::Assignment assignment = *std::move(whole);
  // A hold that came before there is a Job.
  assignment.set_held(queue_.IsHeld(run_key));
  std::vector<std::string> file_parts;
  absl::StatusOr<RunObjects> objects = Prepare(assignment, file_parts);
  // Other faults of the job are found without its files.
  if (objects.ok() && assignment.spec().uploads_size() > 0) {
    if (LaunchEnd end = PackBroughtFiles(run_key, assignment.spec(), &file_parts))
      return *std::move(end);
    objects = Prepare(assignment, file_parts);
  }
  if (absl::IsUnavailable(objects.status())) return DeferredBecause(objects.status());
  if (!objects.ok()) {
    return RefusedAs(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                     {.detail = agents::WhatIsWrong(objects.status())});
  }
  if (const auto key = contract::RunKey::Parse(run_key); key.ok()) {
    const MutexLock lock(mutex_);
    instances_.insert(key->instance);
  }
  NamespaceRuns& home = HomeOf(objects->name_space);
  if (home.IsUnmade(run_key) && !MayLaunchIn(&home)) return DeferredBecause(home.WhyUnmade());
  if (const absl::Status open = OpenLease(assignment, objects->name_space); !open.ok())
    return DeferredBecause(open);
  RunStore& store = home.store();
  store.Want(run_key);
  JobObject job;
  bool is_new = false;
  if (LaunchEnd end = calls_.CreateJob(*objects, &job, &is_new)) return *std::move(end);
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kLaunched;
  outcome.external_id = job.name.name_space + "/" + job.name.name;
  outcome.evidence =
      MakeEvidence(fmt::format("Job {} (uid {}, resourceVersion {})", outcome.external_id,
                               job.name.uid, job.name.resource_version));
  store.Put(job);
  if (job.is_launch_complete || job.deletion_time.has_value()) {
    queue_.Remove(run_key);
    return outcome;
  }
  // An earlier launch made it, before the run was held: Kueue must not let it go. A Job that Kueue
  // has let go stays so.
  if (assignment.held() && job.is_suspended && IsInQueue(job)) {
    const absl::Status left = ChangeJob(job.name, QueuePatch(job.name.uid, kHeldQueue));
    if (!left.ok()) return UnclearBecause(left);
  }
  if (LaunchEnd end = calls_.CreateOwned(*objects, job, is_new))
    return TakeBack(*std::move(end), job);
  queue_.Add(InPlace(run, objects->name_space), assignment.held());
  // A run that cannot be let go now, and any other that is ready, has its turn at the next look at
  // the runs.
  StartReady(run_key);
  return outcome;
}

LaunchOutcome KubernetesBackend::TakeBack(LaunchOutcome outcome, const JobObject& job) {
  // If it is not OK, the sweep finds it.
  if (outcome.kind == LaunchOutcome::Kind::kRefused) (void)calls_.DeleteJob(job.name);
  return outcome;
}

void KubernetesBackend::WakeStarter() {
  if (is_start_due_.exchange(true)) return;
  starter_.Post([this] {
    is_start_due_ = false;
    StartReady("");
  });
}

void KubernetesBackend::StartReady(const std::string& only) {
  // Holds the namespaces in which the server, or a service that it asks, lets no run go: others
  // would wait as long for the same answer.
  std::set<std::string> troubled;
  for (const StartQueue::AssignmentPtr& run : queue_.TakeReady(only)) {
    const std::string& run_key = run->run_key();
    const std::string name_space = kubernetes::NamespaceOf(run->spec(), config_.name_space);
    if (WasCanceled(run_key)) {
      queue_.Remove(run_key);
      continue;
    }
    if (queue_.IsHeld(run_key)) {
      queue_.PutBack(run_key);
      continue;
    }
    // A run that waits for the server's answer to a hold may not be let go before that answer, nor
    // after it unseen.
    if (troubled.contains(name_space) || !BeginChange(run_key)) {
      queue_.Postpone(run_key);
      continue;
    }
    absl::Status status = LetGo(*run);
    ForgetChanges(run_key);  // a hold that is wished from now on is another one
    if (absl::IsNotFound(status)) {
      queue_.Remove(run_key);  // a look at the run tells what that means
      continue;
    }
    if (absl::IsInvalidArgument(status)) status = GiveUp(*run, status);
    if (status.ok()) {
      queue_.SetLetGo(run_key);
      continue;
    }
    queue_.Return(run_key,
                  "its Job could not be let go yet: " + std::string(ToStd(status.message())),
                  IsServersTrouble(status));
    if (IsServersTrouble(status)) troubled.insert(name_space);
  }
}

absl::Status KubernetesBackend::GiveUp(const agent::v1::Assignment& run,
                                       const absl::Status& refusal) {
  const v1::Failure failure = contract::MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
      {.detail = std::string(ToStd(refusal.message())), .phase = v1::FAILURE_PHASE_LAUNCH});
  const absl::Status kept = given_up_.Add(run.run_key(), failure);
  if (!kept.ok()) return kept;
  queue_.Remove(run.run_key());
  // The next look at the run ends it.
  const std::string name_space = kubernetes::NamespaceOf(run.spec(), config_.name_space);
  HomeOf(name_space).store().MarkNews(run.run_key());
  return absl::OkStatus();
}

absl::Status KubernetesBackend::LetGo(const agent::v1::Assignment& run) {
  const std::string name_space = kubernetes::NamespaceOf(run.spec(), config_.name_space);
  const absl::StatusOr<std::optional<JobObject>> job = FindJob(name_space, run.run_key());
  if (!job.ok()) return job.status();
  if (!job->has_value()) return absl::NotFoundError("there is no Job");
  absl::StatusOr<JobObject> patched = SendOff(**job, run);
  if (!patched.ok()) return patched.status();
  HomeOf(name_space).store().Put(*std::move(patched));
  return absl::OkStatus();
}

absl::StatusOr<JobObject> KubernetesBackend::SendOff(const JobObject& job,
                                                     const agent::v1::Assignment& run) {
  agent::v1::Assignment released = run;
  std::string* queue = released.mutable_spec()->mutable_kubernetes()->mutable_queue();
  // Kueue itself has put it into a queue.
  if (queue->empty() && job.queue != kHeldQueue) *queue = job.queue;
  if (queue->empty() && !job.queue.empty()) {
    const absl::StatusOr<JobObject> left = calls_.PatchJob(job.name, QueuePatch(job.name.uid, ""));
    // Kueue refuses that where there is a default queue.
    if (absl::IsInvalidArgument(left.status())) {
      *queue = kDefaultQueue;
    } else if (!left.ok()) {
      return left;
    }
  }
  return calls_.PatchJob(job.name, LaunchPatch(job.name.uid, released));
}

std::set<std::string> KubernetesBackend::PlacesOf(const agents::RunHandle& run) const {
  std::set<std::string> places = {NamespaceOf(run)};
  // A Job of that name in the namespace of another project is not the run's, whatever it says.
  if (config_.projects != nullptr) {
    places.erase("");
    return places;
  }
  // A run that names its namespace is there and nowhere else.
  const bool is_named =
      run.assignment != nullptr && !kubernetes::NamespaceOf(run.assignment->spec(), "").empty();
  if (run.external_id.empty() && !is_named)
    places.insert(config_.namespaces.begin(), config_.namespaces.end());
  return places;
}

absl::StatusOr<std::optional<JobObject>> KubernetesBackend::FindLaunched(
    const agents::RunHandle& run) {
  const std::set<std::string> places = PlacesOf(run);
  if (places.empty()) {
    return absl::UnavailableError(fmt::format(
        "kubernetes.projects has no line any more for the project of run {}, so that nothing tells "
        "where its Job is; put the line back and restart the agent",
        run.run_key));
  }
  for (const std::string& name_space : places) {
    absl::StatusOr<std::optional<JobObject>> job = calls_.FindRun(name_space, run.run_key);
    // A namespace that is missing has no rights either, which says nothing of the run.
    if (absl::IsPermissionDenied(job.status()) && HomeOf(name_space).IsMissing()) continue;
    if (!job.ok() || job->has_value()) return job;
  }
  return std::nullopt;
}

absl::StatusOr<bool> KubernetesBackend::IsLaunched(const JobObject& job) {
  if (job.is_launch_complete || job.deletion_time.has_value() || job.HasEnded()) return true;
  // Kueue may have let it go before the launch was complete. A program that has begun has had all
  // that it needs, for the Secret comes last.
  const absl::StatusOr<std::vector<PodObject>> pods =
      calls_.ListPods(job.name.name_space, job.name.run_key);
  if (!pods.ok()) return pods.status();
  return std::any_of(pods->begin(), pods->end(), HasStarted);
}

absl::Status KubernetesBackend::NoteForbidden(const std::string& run_key, Access what,
                                              const absl::Status& why) {
  NamespaceRuns& home = HomeOf(what.name_space);
  if (home.Forbid(run_key, std::move(what), why)) TellInventory();
  return home.WhyUnmade();
}

bool KubernetesBackend::MayLaunchIn(NamespaceRuns* home) {
  if (!home->is_forbidden()) return true;
  if (!home->AskLaunchRights(kRightsAreFresh).ok()) return false;
  TellInventory();
  return true;
}

std::optional<LookupOutcome> KubernetesBackend::LookUpForbidden(const agents::RunHandle& run) {
  NamespaceRuns& home = HomeOf(run);
  if (MayLaunchIn(&home) || run.cancel_requested) return std::nullopt;
  LookupOutcome outcome;
  // To say that it is absent would have it launched again, in vain.
  outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
  outcome.evidence =
      MakeEvidence("its Job was not made: " + std::string(ToStd(home.WhyUnmade().message())));
  return outcome;
}

LookupOutcome KubernetesBackend::Lookup(const agents::RunHandle& run) {
  if (std::optional<LookupOutcome> known = LookUpForbidden(run)) return *std::move(known);
  LookupOutcome outcome;
  const absl::StatusOr<std::optional<JobObject>> job = FindLaunched(run);
  if (!job.ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
    outcome.evidence = MakeEvidence(std::string(ToStd(job.status().message())));
    return outcome;
  }
  if (!job->has_value()) {
    if (const absl::Status same = ConfirmCluster(); !same.ok()) {
      outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
      outcome.evidence = MakeEvidence(std::string(ToStd(same.message())));
      return outcome;
    }
    outcome.kind = LookupOutcome::Kind::kAbsent;
    outcome.evidence = MakeEvidence(
        fmt::format("the API server has no Job {}/{} of Muster's", NamespaceOf(run), run.run_key));
    return outcome;
  }
  const std::string name = (*job)->name.name_space + "/" + run.run_key;
  const absl::StatusOr<bool> is_whole = IsLaunched(**job);
  if (!is_whole.ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
    outcome.evidence = MakeEvidence(std::string(ToStd(is_whole.status().message())));
  } else if (!*is_whole) {
    // Another launch completes it.
    outcome.kind = LookupOutcome::Kind::kAbsent;
    outcome.evidence = MakeEvidence("the launch of Job " + name + " was cut short");
  } else {
    outcome.kind = LookupOutcome::Kind::kFound;
    outcome.external_id = name;
    outcome.evidence = MakeEvidence(
        fmt::format("Job {} (resourceVersion {})", name, (*job)->name.resource_version));
  }
  return outcome;
}

}  // namespace muster::kubernetes
