#include "agents/kubernetes/manifest/manifest.h"

#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/manifest/pod_template.h"
#include "agents/kubernetes/manifest/pod_volumes.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

constexpr char kPodGroupLabel[] = "scheduling.x-k8s.io/pod-group";
// Volcano's scheduler reads a pod's group in this annotation, and its controllers the queue of the
// groups that they make themselves.
constexpr char kVolcanoGroupName[] = "scheduling.k8s.io/group-name";
constexpr char kVolcanoQueue[] = "scheduling.volcano.sh/queue-name";
// It lasts until the broker has the end and the logs; see TimeToLivePatch.
constexpr int64_t kLongTimeToLiveSeconds = int64_t{7} * 24 * 3600;

Json LabelsOf(const agent::v1::Assignment& assignment) {
  Json labels = {{kManagedByLabel, kManagedByMuster},
                 {kRunLabel, assignment.run_key()},
                 {kJobLabel, std::to_string(assignment.job_id())},
                 {kRunNumberLabel, std::to_string(assignment.run())},
                 {kProjectLabel, assignment.spec().project()}};
  const absl::StatusOr<contract::RunKey> key = contract::RunKey::Parse(assignment.run_key());
  if (key.ok()) labels[kInstanceLabel] = key->instance;
  return labels;
}

Json MetadataOf(const agent::v1::Assignment& assignment, const std::string& name_space) {
  return {
      {"name", assignment.run_key()}, {"namespace", name_space}, {"labels", LabelsOf(assignment)}};
}

// Adds the labels and annotations that people and their tools put on the Job and its pods, beside
// Muster's own.
void AddUserMetadata(const agent::v1::Assignment& assignment, Json* metadata) {
  const v1::KubernetesOptions& options = assignment.spec().kubernetes();
  for (const auto& [key, value] : options.labels()) (*metadata)["labels"][key] = value;
  for (const auto& [key, value] : options.annotations()) (*metadata)["annotations"][key] = value;
  (*metadata)["annotations"][kUserAnnotation] = assignment.user();
  (*metadata)["annotations"][kNameAnnotation] = assignment.spec().name();
  if (options.gang() == v1::KUBERNETES_GANG_VOLCANO)
    (*metadata)["annotations"][kVolcanoGroupName] = assignment.run_key();
  if (options.gang() == v1::KUBERNETES_GANG_POD_GROUP)
    (*metadata)["labels"][kPodGroupLabel] = assignment.run_key();
}

// A disturbance of a pod is told apart from a failure in it; either ends the run: whether there is
// another one is the broker's business.
Json FailurePolicy() {
  Json disturbed = {
      {"action", "FailJob"},
      {"onPodConditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  Json failed = {
      {"action", "FailJob"},
      {"onExitCodes",
       {{"containerName", kMainContainer}, {"operator", "NotIn"}, {"values", Json::array({0})}}}};
  return {{"rules", Json::array({std::move(disturbed), std::move(failed)})}};
}

// Returns the indexes whose success is the Job's, as "0,1,2"; empty stands for all.
std::string LeadingIndexes(const v1::JobSpec& spec) {
  std::vector<uint32_t> indexes;
  for (uint32_t index = 0; index < PodCount(spec); ++index) {
    const v1::Role* role = contract::RoleOfRank(spec, index);
    if (role != nullptr && role->leads()) indexes.push_back(index);
  }
  return absl::StrJoin(indexes, ",");
}

void AddSuccessPolicy(const v1::JobSpec& spec, Json* job) {
  const std::string leading = LeadingIndexes(spec);
  if (leading.empty() || PodCount(spec) == 1) return;
  (*job)["spec"]["successPolicy"]["rules"] = Json::array({{{"succeededIndexes", leading}}});
  (*job)["metadata"]["annotations"][kLeadingAnnotation] = leading;
}

Json MakeJob(const agent::v1::Assignment& assignment, const std::string& name_space, Json pod) {
  const uint32_t pods = PodCount(assignment.spec());
  Json metadata = MetadataOf(assignment, name_space);
  AddUserMetadata(assignment, &metadata);
  metadata["annotations"][kTimeToLiveAnnotation] =
      std::to_string(TimeToLiveSeconds(assignment.spec()));
  Json pod_metadata = {{"labels", LabelsOf(assignment)}};
  AddUserMetadata(assignment, &pod_metadata);
  Json job = {{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata", std::move(metadata)},
              {"spec",
               {{"suspend", true},
                {"completionMode", pods > 1 ? "Indexed" : "NonIndexed"},
                {"completions", pods},
                {"parallelism", pods},
                {"backoffLimit", 0},
                {"podFailurePolicy", FailurePolicy()},
                // The only one that goes with a failure policy.
                {"podReplacementPolicy", "Failed"},
                {"ttlSecondsAfterFinished", kLongTimeToLiveSeconds},
                {"template", {{"metadata", std::move(pod_metadata)}, {"spec", std::move(pod)}}}}}};
  AddSuccessPolicy(assignment.spec(), &job);
  // From the beginning, for a cluster may take none without. Kueue may then start it before its
  // Secret is there, for which its pods wait.
  if (const std::string& queue = assignment.spec().kubernetes().queue(); !queue.empty())
    job["metadata"]["labels"][kQueueLabel] = assignment.held() ? kHeldQueue : queue;
  return job;
}

Json MakeSecret(const agent::v1::Assignment& assignment, const std::string& name_space,
                const std::map<std::string, std::string>& files) {
  Json data = Json::object();
  for (const auto& [name, content] : files) data[name] = absl::Base64Escape(ToAbsl(content));
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", MetadataOf(assignment, name_space)},
          {"type", "Opaque"},
          // Nodes need not watch what never changes.
          {"immutable", true},
          {"data", std::move(data)}};
}

std::vector<Json> MakeFileSecrets(const agent::v1::Assignment& assignment,
                                  const std::string& name_space,
                                  const std::vector<std::string>& parts) {
  std::vector<Json> secrets;
  for (size_t i = 0; i < parts.size(); ++i) {
    secrets.push_back(MakeSecret(assignment, name_space, {{kPartFile, parts[i]}}));
    secrets.back()["metadata"]["name"] = NameOfPart(assignment.run_key(), i);
  }
  return secrets;
}

Json MakeService(const agent::v1::Assignment& assignment, const std::string& name_space) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", MetadataOf(assignment, name_space)},
          {"spec",
           {{"clusterIP", "None"},
            // Programs look for each other as soon as they start.
            {"publishNotReadyAddresses", true},
            {"selector", {{kRunLabel, assignment.run_key()}}}}}};
}

Json MakePodGroup(const agent::v1::Assignment& assignment, const std::string& name_space) {
  return {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
          {"kind", "PodGroup"},
          {"metadata", MetadataOf(assignment, name_space)},
          {"spec", {{"minMember", PodCount(assignment.spec())}}}};
}

// Makes the group that Volcano makes itself for pods that name none: of one member, unless its
// release and its settings look for another number in the Job's annotations, as 1.10 does not.
// Hence this one, which has what Volcano would have read there.
Json MakeVolcanoGroup(const agent::v1::Assignment& assignment, const std::string& name_space) {
  const v1::KubernetesOptions& options = assignment.spec().kubernetes();
  Json group = MakePodGroup(assignment, name_space);
  group["apiVersion"] = "scheduling.volcano.sh/v1beta1";
  for (const auto& [key, value] : options.annotations())
    group["metadata"]["annotations"][key] = value;
  if (const auto queue = options.annotations().find(kVolcanoQueue);
      queue != options.annotations().end())
    group["spec"]["queue"] = queue->second;
  if (!options.priority_class().empty())
    group["spec"]["priorityClassName"] = options.priority_class();
  return group;
}

// A pod has its node's resources to itself, so roles cannot share them as they would on a node.
absl::Status CheckRoles(const v1::JobSpec& spec) {
  const auto shared = contract::FindRolesThatShareNodes(spec);
  if (!shared.has_value()) return absl::OkStatus();
  const auto [first, second] = *shared;
  return contract::BadField(
      fmt::format("roles[{}].first_node", second),
      fmt::format("{}: the role shares nodes with roles[{}], and on Kubernetes each rank is a pod "
                  "of its own; give each role nodes of its own, or use Slurm",
                  spec.roles(second).first_node(), first));
}

Json PatchOf(const std::string& uid) { return {{"metadata", {{"uid", uid}}}}; }

}  // namespace

std::string NamespaceOf(const v1::JobSpec& spec, const std::string& default_namespace) {
  if (!spec.kubernetes().namespace_().empty()) return spec.kubernetes().namespace_();
  return spec.placement().pool().empty() ? default_namespace : spec.placement().pool();
}

absl::StatusOr<RunObjects> MakeObjects(const agent::v1::Assignment& assignment,
                                       const KubernetesConfig& config,
                                       const std::string& default_namespace,
                                       const std::vector<std::string>& file_parts) {
  if (absl::Status good = CheckRoles(assignment.spec()); !good.ok()) return good;
  absl::StatusOr<agent::v1::Assignment> resolved = OnStorage(assignment, config);
  if (!resolved.ok()) return resolved.status();
  absl::StatusOr<PodVolumes> volumes = MakeVolumes(assignment, *resolved, config);
  if (!volumes.ok()) return volumes.status();
  if (!file_parts.empty()) AddBroughtFiles(assignment.run_key(), file_parts.size(), &*volumes);
  std::map<std::string, std::string> files = MakeRunFiles(*resolved, config.cluster);
  if (!volumes->storage_mounts.empty()) {
    files[kStorageFile] = StorageScript();
    files[kStorageWordsFile] = volumes->storage_words;
  }
  if (absl::Status small = CheckSecretSize(assignment.spec(), files); !small.ok()) return small;
  absl::StatusOr<Json> pod = MakePodSpec(*resolved, config, *std::move(volumes));
  if (!pod.ok()) return pod.status();
  RunObjects objects;
  objects.name_space = NamespaceOf(assignment.spec(), default_namespace);
  objects.name = assignment.run_key();
  objects.job = MakeJob(*resolved, objects.name_space, *std::move(pod));
  objects.secret = MakeSecret(*resolved, objects.name_space, files);
  if (!file_parts.empty()) {
    size_t bytes = 0;
    for (const std::string& part : file_parts) bytes += part.size();
    objects.job["metadata"]["annotations"][kArchiveAnnotation] = std::to_string(bytes);
  }
  objects.file_secrets = MakeFileSecrets(*resolved, objects.name_space, file_parts);
  if (PodCount(assignment.spec()) > 1) objects.service = MakeService(*resolved, objects.name_space);
  if (assignment.spec().kubernetes().gang() == v1::KUBERNETES_GANG_POD_GROUP)
    objects.pod_group = MakePodGroup(*resolved, objects.name_space);
  if (assignment.spec().kubernetes().gang() == v1::KUBERNETES_GANG_VOLCANO)
    objects.pod_group = MakeVolcanoGroup(*resolved, objects.name_space);
  return objects;
}

Json OwnedBy(Json object, const std::string& job_name, const std::string& job_uid) {
  object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                        {"kind", "Job"},
                                                        {"name", job_name},
                                                        {"uid", job_uid},
                                                        {"controller", true},
                                                        {"blockOwnerDeletion", true}}});
  return object;
}

Json CompletePatch(const std::string& uid) {
  Json patch = PatchOf(uid);
  patch["metadata"]["annotations"][kLaunchAnnotation] = kLaunchComplete;
  patch["metadata"]["annotations"][kHeldAnnotation] = Json();
  return patch;
}

Json LaunchPatch(const std::string& uid, const agent::v1::Assignment& assignment) {
  Json patch = CompletePatch(uid);
  const std::string& queue = assignment.spec().kubernetes().queue();
  if (queue.empty()) {
    patch["spec"]["suspend"] = false;
  } else {
    patch["metadata"]["labels"][kQueueLabel] = queue;
  }
  return patch;
}

Json HoldPatch(const JobObject& job) {
  Json patch = job.queue.empty() ? PatchOf(job.name.uid) : QueuePatch(job.name.uid, kHeldQueue);
  patch["metadata"]["resourceVersion"] = job.name.resource_version;
  patch["metadata"]["annotations"][kLaunchAnnotation] = Json();
  if (!job.queue.empty()) return patch;
  patch["metadata"]["annotations"][kHeldAnnotation] = "true";
  patch["spec"]["suspend"] = true;
  return patch;
}

Json QueuePatch(const std::string& uid, const std::string& queue) {
  Json patch = PatchOf(uid);
  patch["metadata"]["labels"][kQueueLabel] = queue.empty() ? Json() : Json(queue);
  return patch;
}

Json TimeToLivePatch(const std::string& uid, int64_t seconds) {
  Json patch = PatchOf(uid);
  patch["spec"]["ttlSecondsAfterFinished"] = seconds;
  return patch;
}

int64_t TimeToLiveSeconds(const v1::JobSpec& spec) {
  if (!spec.kubernetes().has_time_to_live()) return kDefaultTimeToLiveSeconds;
  return spec.kubernetes().time_to_live().seconds();
}

}  // namespace muster::kubernetes
