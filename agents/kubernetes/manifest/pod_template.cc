#include "agents/kubernetes/manifest/pod_template.h"

#include <algorithm>
#include <utility>

#include "agents/kubernetes/manifest/configured_facts.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/manifest/pod_security.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/objects/end_record.h"
#include "contract/admission.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/image.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using contract::BadField;

constexpr int64_t kDefaultGraceSeconds = 30;  // Kubernetes' own
constexpr char kVolcano[] = "volcano";

absl::StatusOr<std::string> ImageOf(const v1::JobSpec& spec) {
  const absl::StatusOr<contract::Image> image = contract::ParseImage(spec.image());
  if (!image.ok()) return image.status();
  if (!image->is_file()) return contract::OciReference(*image);
  return BadField("image", fmt::format("{} is a file, which only Slurm runs; name an image in a "
                                       "registry",
                                       contract::Quoted(spec.image())));
}

// Returns requests; without them a pod is the first to go when a node runs short, and a quota may
// refuse it. The memory's limit is what /dev/shm counts against.
Json ResourcesOf(const v1::JobSpec& spec, const KubernetesConfig& config, bool with_gpus) {
  const v1::Resources& wanted = spec.resources();
  const uint64_t cpu = wanted.cpu_millis() > 0 ? wanted.cpu_millis() : config.default_cpu_millis;
  const std::string memory = std::to_string(
      wanted.memory_bytes() > 0 ? wanted.memory_bytes() : config.default_memory_bytes);
  Json resources = {{"requests", {{"cpu", fmt::format("{}m", cpu)}, {"memory", memory}}},
                    {"limits", {{"memory", memory}}}};
  const GpuChoice gpus = ChooseGpus(wanted, config);
  if (with_gpus && gpus.count > 0) {
    resources["requests"][gpus.resource] = std::to_string(gpus.count);
    resources["limits"][gpus.resource] = std::to_string(gpus.count);
  }
  return resources;
}

Json ContainerOf(const char* name, const std::string& image, const char* file, Json mounts,
                 const PodSecurity& security) {
  Json container = {{"name", name},
                    {"image", image},
                    {"command", {"/bin/sh", fmt::format("{}/{}", kRunFiles, file)}},
                    {"workingDir", kWorkDirectory},
                    {"env", Json::array({MakeSealVariable()})},
                    {"volumeMounts", std::move(mounts)}};
  if (!security.container.empty()) container["securityContext"] = security.container;
  return container;
}

absl::Status CheckAllowed(const v1::KubernetesOptions& options, const KubernetesConfig& config) {
  const auto forbidden =
      contract::FindForbidden(options, ConfiguredFacts(config).kubernetes(), config.cluster);
  if (!forbidden.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(forbidden->message());
}

void SetIf(const std::string& value, const char* key, Json* object) {
  if (!value.empty()) (*object)[key] = value;
}

void AddOptions(const agent::v1::Assignment& assignment, const KubernetesConfig& config,
                Json* pod) {
  const v1::KubernetesOptions& options = assignment.spec().kubernetes();
  SetIf(options.scheduler_name(), "schedulerName", pod);
  if (options.scheduler_name().empty() && options.gang() == v1::KUBERNETES_GANG_VOLCANO)
    (*pod)["schedulerName"] = kVolcano;
  SetIf(options.priority_class(), "priorityClassName", pod);
  SetIf(options.runtime_class(), "runtimeClassName", pod);
  SetIf(options.service_account(), "serviceAccountName", pod);
  for (const auto& [key, value] : options.node_selector()) (*pod)["nodeSelector"][key] = value;
  if (Json tolerations = MakeTolerations(assignment, config); !tolerations.empty())
    (*pod)["tolerations"] = std::move(tolerations);
  if (options.host_network()) {
    (*pod)["hostNetwork"] = true;
    // Else the pod would ask the node's own name servers, which know no Service.
    (*pod)["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
}

void AddPullSecrets(const v1::KubernetesOptions& options, const KubernetesConfig& config,
                    Json* pod) {
  std::vector<std::string> names(options.image_pull_secrets().begin(),
                                 options.image_pull_secrets().end());
  if (names.empty()) names = config.image_pull_secrets;
  for (const std::string& name : names) (*pod)["imagePullSecrets"].push_back({{"name", name}});
}

// Returns whole seconds, rounded up, because a limit is not to end a run early.
int64_t WholeSeconds(const google::protobuf::Duration& duration) {
  return duration.seconds() + (duration.nanos() > 0 ? 1 : 0);
}

}  // namespace

Json MakeSealVariable() {
  // The API server gives it to the Job's template, from Kubernetes 1.27 on: see JudgeVersion. The
  // label that older ones give has no prefix and is not promised to stay.
  const char* const uid = "metadata.labels['batch.kubernetes.io/controller-uid']";
  return {{"name", kSealVariable}, {"valueFrom", {{"fieldRef", {{"fieldPath", uid}}}}}};
}

absl::StatusOr<Json> MakePodSpec(const agent::v1::Assignment& assignment,
                                 const KubernetesConfig& config, PodVolumes volumes) {
  const v1::JobSpec& spec = assignment.spec();
  const v1::KubernetesOptions& options = spec.kubernetes();
  if (absl::Status allowed = CheckAllowed(options, config); !allowed.ok()) return allowed;
  const absl::StatusOr<std::string> image = ImageOf(spec);
  if (!image.ok()) return image.status();
  const absl::StatusOr<PodSecurity> security = MakePodSecurity(spec, config);
  if (!security.ok()) return security.status();
  Json main = ContainerOf(kMainContainer, *image, kStartFile, volumes.mounts, *security);
  main["resources"] = ResourcesOf(spec, config, /*with_gpus=*/true);
  Json pod = {{"restartPolicy", "Never"},
              {"automountServiceAccountToken", security->has_token},
              {"enableServiceLinks", false},
              {"terminationGracePeriodSeconds", options.has_termination_grace()
                                                    ? options.termination_grace().seconds()
                                                    : kDefaultGraceSeconds},
              {"volumes", std::move(volumes.volumes)},
              {"containers", Json::array({std::move(main)})}};
  if (!volumes.storage_mounts.empty()) {
    Json mounts = std::move(volumes.storage_mounts);
    mounts.push_back({{"name", "muster-run"}, {"mountPath", kRunFiles}, {"readOnly", true}});
    mounts.push_back({{"name", "muster-work"}, {"mountPath", kWorkDirectory}});
    Json look = ContainerOf(kStorageContainer, *image, kStorageFile, std::move(mounts), *security);
    // No more than the other, so that the pod needs no more.
    look["resources"] = ResourcesOf(spec, config, /*with_gpus=*/false);
    pod["initContainers"] = Json::array({std::move(look)});
  }
  if (!security->pod.empty()) pod["securityContext"] = security->pod;
  if (spec.has_time_limit()) pod["activeDeadlineSeconds"] = WholeSeconds(spec.time_limit());
  if (PodCount(spec) > 1) pod["subdomain"] = assignment.run_key();
  AddOptions(assignment, config, &pod);
  AddPullSecrets(options, config, &pod);
  if (Json affinity = MakeAffinity(assignment, config); !affinity.empty())
    pod["affinity"] = std::move(affinity);
  return pod;
}

}  // namespace muster::kubernetes
