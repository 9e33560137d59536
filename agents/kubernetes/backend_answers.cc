// Answers people's questions about the cluster: a preflight, its details, a plan.
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/check_list.h"
#include "agents/core/job_storage.h"
#include "agents/core/proto_time.h"
#include "agents/kubernetes/api/yaml_text.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/checks/preflight.h"
#include "agents/kubernetes/cluster/admission_facts.h"
#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/manifest/pod_template.h"
#include "agents/kubernetes/manifest/projects.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/gang.h"
#include "contract/admission.h"
#include "contract/awaited.h"
#include "contract/gpu_share.h"
#include "contract/gpu_types.h"
#include "contract/issues.h"
#include "contract/slurm_options.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// This is the run key in plans, whose job has no number yet; with Muster's name in front it would
// be a real one.
constexpr char kPlannedRun[] = "plan-1-1";

// The user's words may hold what nobody else is to read.
Json WithoutContents(Json secret) {
  for (auto& [key, value] : secret["data"].items())
    value = fmt::format("({} bytes in base64)", value.get<std::string>().size());
  return secret;
}

std::string ManifestOf(const RunObjects& objects) {
  std::string text = YamlOf(objects.job) + "---\n" + YamlOf(WithoutContents(objects.secret));
  for (const Json& part : objects.file_secrets) text += "---\n" + YamlOf(WithoutContents(part));
  for (const std::optional<Json>& more : {objects.service, objects.pod_group}) {
    if (more.has_value()) text += "---\n" + YamlOf(*more);
  }
  return text;
}

// Returns whether one of the volumes is at that path of the main container, or above it.
bool IsOnVolume(const RunObjects& objects, const std::string& path) {
  for (const Json& container : At(objects.job, "spec/template/spec/containers")) {
    for (const Json& mount : At(container, "volumeMounts")) {
      const std::string at = TextAt(mount, "mountPath");
      if (path == at || path.starts_with(at.ends_with('/') ? at : at + "/")) return true;
    }
  }
  return false;
}

// Nobody can know here which directories an image has.
void WarnOfDirectory(const v1::JobSpec& spec, const RunObjects& objects,
                     agents::CheckList* checks) {
  const std::string& wanted = spec.working_directory();
  if (wanted.empty() || wanted == "/" || IsOnVolume(objects, wanted)) return;
  const v1::ClusterCheck check =
      contract::UnknownDirectory(wanted, contract::IsDirectoryImplied(spec));
  checks->Warn(v1::CHECK_CODE_STORAGE, check.subject(), check.seen(), check.remedy(),
               v1::SUBMIT_WARNING_CODE_WORKING_DIRECTORY);
}

// `spelled` is the job as the cluster spells what it names.
void TellGpuType(const v1::JobSpec& spec, const v1::JobSpec& spelled, agents::CheckList* checks) {
  for (int i = 0; i < spec.resources().gpus_size(); ++i) {
    const std::string& wanted = spec.resources().gpus(i).type();
    const std::string& type = spelled.resources().gpus(i).type();
    if (!contract::IsSameGpuType(wanted, type))
      checks->Ok(v1::CHECK_CODE_GPUS, "GPUs", fmt::format("{} is {} here", wanted, type));
  }
}

// Lists the things that pods wait for and only pods can report: the agent's account may read
// neither.
void TellUnseen(const v1::JobSpec& spec, agents::CheckList* checks) {
  for (int i = 0; i < spec.kubernetes().volumes_size(); ++i) {
    const v1::KubernetesVolume& volume = spec.kubernetes().volumes(i);
    const bool is_secret = !volume.secret().empty();
    if (!is_secret && volume.config_map().empty()) continue;
    checks->Skip(v1::CHECK_CODE_STORAGE,
                 fmt::format("kubernetes.volumes[{}].{}", i, is_secret ? "secret" : "config_map"),
                 fmt::format("\"{}\" could not be asked for: the agent's account may not read {}; "
                             "a run waits for one that is not there, and fails then",
                             is_secret ? volume.secret() : volume.config_map(),
                             is_secret ? "Secrets" : "ConfigMaps"));
  }
}

constexpr char kUnknownFiles[] =
    "the broker has no list of the files yet, so that neither their size is judged nor their "
    "Secrets are part of this plan";
constexpr char kMayBeQueued[] =
    "the Job is made with the queue muster-held, which there is not, so that Kueue cannot start it "
    "half made; if its namespace has a queue default, which cannot be seen from here, it goes "
    "there, and Kueue decides when it starts";

// Makes the Job as Kueue sees it once it is let go; before that, a Job that a default queue would
// take has the name of a queue that does not exist.
RunObjects AsLetGo(RunObjects objects, const std::string& queue) {
  if (!queue.empty()) objects.job["metadata"]["labels"][kQueueLabel] = queue;
  return objects;
}

// Names the scheduler of a job that Muster lets go at once, because another one decides.
std::string WhoStarts(const v1::JobSpec& spec, const std::string& queue) {
  if (queue.empty()) return "the gang scheduler that it names decides when its pods start";
  return fmt::format(
      "Kueue decides when it starts, by the namespace's queue {}{}", queue,
      spec.kubernetes().queue().empty() ? ", which takes each job that names none" : "");
}

const char* RemedyOfRefusal(const absl::Status& status) {
  if (absl::IsPermissionDenied(status) &&
      status.message().find("exceeded quota") != absl::string_view::npos) {
    return "Wait: the job starts once the quota has room. Jobs that have ended count in it for "
           "kubernetes.time_to_live.";
  }
  if (absl::IsPermissionDenied(status) || absl::IsNotFound(status)) {
    return "Ask the cluster's operator, to whom muster check tells what is missing; until then the "
           "job waits.";
  }
  return "Try again.";
}

void CheckDryRun(const absl::StatusOr<std::optional<std::string>>& refusal,
                 agents::CheckList* checks) {
  constexpr char kSubject[] = "dry run";
  if (!refusal.ok()) {
    checks->Warn(v1::CHECK_CODE_TRIAL, kSubject,
                 "not now: " + std::string(ToStd(refusal.status().message())),
                 RemedyOfRefusal(refusal.status()));
  } else if (refusal->has_value()) {
    checks->Fail(v1::CHECK_CODE_TRIAL, kSubject, **refusal, "Correct the job.");
  } else {
    checks->Ok(v1::CHECK_CODE_TRIAL, kSubject,
               "the API server would take the Job, and what it owns; pods are not tried");
  }
}

}  // namespace

absl::StatusOr<v1::Inventory> KubernetesBackend::Inventory() {
  absl::StatusOr<v1::Inventory> inventory = view_.Inventory();
  if (!inventory.ok()) return inventory;
  queues_.Learn(absl::ZeroDuration());
  v1::AdmissionFacts& facts = *inventory->mutable_admission();
  things_.AddFacts(facts.mutable_kubernetes());
  queues_.AddFacts(facts.mutable_kubernetes());
  // The broker takes the first namespace for jobs that name none, and each project has its own.
  if (config_.projects != nullptr && facts.kubernetes().namespaces_size() > 0) {
    v1::NamespaceFacts* first = facts.mutable_kubernetes()->mutable_namespaces(0);
    v1::NamespaceFacts untold;
    untold.set_name(first->name());
    *first = std::move(untold);
  }
  KeepWithinBounds(&facts);
  for (v1::ClusterIssue& issue : queues_.Issues()) *inventory->add_issues() = std::move(issue);
  if (std::optional<v1::ClusterIssue> unknown = Sweep()) *inventory->add_issues() = *unknown;
  if (std::string waits = file_room_.Settle(); !waits.empty()) {
    *inventory->add_issues() = contract::AgentTrouble("uploads", waits);
  }
  if (const absl::Status health = logs_.health(); !health.ok()) {
    *inventory->add_issues() = contract::AgentTrouble("logs", std::string(ToStd(health.message())));
  }
  return inventory;
}

v1::ClusterChecks KubernetesBackend::Check() {
  return kubernetes::Check(config_, &api_, view_.KnownIdentity());
}

absl::StatusOr<v1::ClusterDetails> KubernetesBackend::Describe(bool /*with_jobs*/) {
  absl::StatusOr<v1::ClusterDetails> details = view_.Describe();
  if (!details.ok()) return details;
  // Runs that Muster lets wait have no pods yet.
  std::map<std::string, uint32_t> waiting;
  for (const StartQueue::AssignmentPtr& run : queue_.Waiting())
    ++waiting[kubernetes::NamespaceOf(run->spec(), config_.name_space)];
  for (v1::PoolLoad& load : *details->mutable_pools()) {
    const uint32_t more = waiting[load.pool()];
    load.set_waiting_jobs(load.waiting_jobs() + more);
    load.set_own_waiting_jobs(load.own_waiting_jobs() + more);
  }
  return details;
}

absl::StatusOr<v1::JobPlan> KubernetesBackend::Plan(const v1::JobSpec& spec,
                                                    const std::string& user) {
  agent::v1::Assignment planned;
  planned.set_run_key(kPlannedRun);
  planned.set_user(user);
  *planned.mutable_spec() = spec;
  // Prepare says what is wrong with one that has no place.
  if (auto placed = InProject(planned, config_); placed.ok()) planned = *std::move(placed);
  v1::JobPlan plan;
  agents::CheckList checks;
  const absl::StatusOr<std::optional<uint64_t>> bytes = BroughtBytes(spec);
  const uint64_t known_bytes = bytes.ok() ? bytes->value_or(0) : 0;
  const absl::StatusOr<RunObjects> objects = Prepare(planned, BlankParts(known_bytes));
  if (absl::IsUnavailable(objects.status())) return objects.status();
  if (!objects.ok()) {
    checks.Fail(v1::CHECK_CODE_OTHER, "the job", agents::WhatIsWrong(objects.status()),
                "Correct the job.");
  } else if (!bytes.ok()) {
    checks.Fail(v1::CHECK_CODE_OTHER, "the job", agents::WhatIsWrong(bytes.status()),
                "Bring less along.");
  } else {
    v1::JobSpec spelled = spec;
    if (view_.SpellGpuType(&spelled).ok()) TellGpuType(spec, spelled, &checks);
    WarnOfDefaults(planned, &checks);
    if (!bytes->has_value()) checks.Skip(v1::CHECK_CODE_STORAGE, "uploads", kUnknownFiles);
    const bool has_file_room = !WarnOfFileRoom(known_bytes, &checks);
    PlanOnServer(planned, *objects, has_file_room, &plan, &checks);
  }
  *plan.mutable_checks() = checks.checks().checks();
  plan.mutable_warnings()->Assign(checks.warnings().begin(), checks.warnings().end());
  return plan;
}

bool KubernetesBackend::WarnOfAwaited(const v1::JobSpec& spec, const std::string& name_space,
                                      agents::CheckList* checks) {
  const auto awaited = things_.FindAwaited(spec, name_space);
  for (const auto& [field, words, exists] : awaited) {
    checks->Warn(v1::CHECK_CODE_STORAGE, field, words,
                 contract::AwaitedClaimRemedy(exists, config_.start_grace),
                 v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
  }
  return !awaited.empty();
}

void KubernetesBackend::WarnOfDefaults(agent::v1::Assignment planned, agents::CheckList* checks) {
  const v1::Resources asked = planned.spec().resources();
  view_.FillResources(&planned);
  const v1::Resources& got = planned.spec().resources();
  const auto check =
      contract::TellDefaults({asked.cpu_millis(), asked.memory_bytes()},
                             ChooseGpus(got, config_).count, {got.cpu_millis(), got.memory_bytes()},
                             {config_.default_cpu_millis, config_.default_memory_bytes});
  if (!check.has_value()) return;
  checks->Warn(v1::CHECK_CODE_LIMITS, check->subject(), check->seen(), check->remedy(),
               v1::SUBMIT_WARNING_CODE_DEFAULT_RESOURCES);
}

bool KubernetesBackend::WarnOfFileRoom(uint64_t archive_bytes, agents::CheckList* checks) const {
  const absl::Status room = archive_bytes > 0 ? file_room_.Try(archive_bytes) : absl::OkStatus();
  if (!room.ok())
    checks->Warn(v1::CHECK_CODE_STORAGE, "uploads", std::string(ToStd(room.message())));
  return !room.ok();
}

void KubernetesBackend::PlanOnServer(const agent::v1::Assignment& planned,
                                     const RunObjects& objects, bool has_file_room,
                                     v1::JobPlan* plan, agents::CheckList* checks) {
  const StartQueue::AssignmentPtr placed =
      InPlace(std::make_shared<const agent::v1::Assignment>(planned), objects.name_space);
  const std::string& queue = placed->spec().kubernetes().queue();
  const bool may_be_queued = queue.empty() && queues_.MayHaveDefaultQueue(objects.name_space);
  plan->set_submission(ManifestOf(AsLetGo(objects, queue)));
  const absl::StatusOr<std::optional<std::string>> refusal = calls_.Try(objects);
  CheckDryRun(refusal, checks);
  WarnOfDirectory(planned.spec(), objects, checks);
  const bool is_awaited = WarnOfAwaited(planned.spec(), objects.name_space, checks);
  TellUnseen(planned.spec(), checks);
  if (may_be_queued) checks->Ok(v1::CHECK_CODE_POOL, "queue", kMayBeQueued);
  if (HasOwnGangScheduler(placed->spec())) {
    checks->Ok(v1::CHECK_CODE_NODES, "room", WhoStarts(planned.spec(), queue));
    return;
  }
  const std::optional<Misfit> waits = queue_.WouldWait(planned);
  checks->Ok(
      v1::CHECK_CODE_NODES, "room",
      waits.has_value() ? "it would wait: " + waits->words : "there is room for all of its pods");
  // When Kueue will let a run go, only Kueue knows.
  const bool starts = refusal.ok() && !refusal->has_value() && !waits.has_value();
  if (starts && has_file_room && !is_awaited && !may_be_queued)
    *plan->mutable_estimated_start_time() = agents::ToProto(absl::Now());
}

}  // namespace muster::kubernetes
