// Why a pod does not start.
#include <algorithm>
#include <array>
#include <string_view>

#include "agents/kubernetes/verdict.h"

namespace muster::kubernetes {
namespace {

struct Trouble {
  std::string_view reason;
  bool is_final;  // at once: waiting cannot help
  v1::FailureClass failure_class;
};

// Reasons for which a container waits. Source: pkg/kubelet/images/types.go and
// pkg/kubelet/container/sync_result.go of Kubernetes.
constexpr auto kImage = v1::FAILURE_CLASS_IMAGE;
constexpr auto kConfig = v1::FAILURE_CLASS_CONFIG;
constexpr std::array<Trouble, 12> kTroubles = {{
    {"InvalidImageName", true, kImage},
    {"ErrImageNeverPull", true, kImage},
    {"ErrImagePull", false, kImage},
    {"ImagePullBackOff", false, kImage},
    {"ImageInspectError", false, kImage},
    {"RegistryUnavailable", false, kImage},
    {"SignatureValidationFailed", false, kImage},
    {"CreateContainerConfigError", false, kConfig},
    {"CreateContainerError", false, kConfig},
    {"RunContainerError", false, kConfig},
    {"PreCreateHookError", false, kConfig},
    {"PostStartHookError", false, kConfig},
}};

std::optional<StartTrouble> OfContainer(const ContainerObject& container) {
  if (container.state != ContainerState::kWaiting || container.reason.empty()) return std::nullopt;
  const auto* known = std::find_if(kTroubles.begin(), kTroubles.end(), [&](const Trouble& trouble) {
    return trouble.reason == container.reason;
  });
  StartTrouble trouble;
  trouble.reason = container.reason;
  trouble.message = container.message;
  if (known == kTroubles.end()) return trouble;
  trouble.is_final = known->is_final;
  trouble.failure_class = known->failure_class;
  return trouble;
}

// What the scheduler cannot find may still come, but for a claim that nobody is about to make.
std::optional<StartTrouble> OfScheduling(const PodObject& pod) {
  const auto found =
      std::find_if(pod.conditions.begin(), pod.conditions.end(),
                   [](const Condition& c) { return c.type == "PodScheduled" && !c.is_true; });
  if (found == pod.conditions.end()) return std::nullopt;
  StartTrouble trouble;
  trouble.reason = found->reason;
  trouble.message = found->message;
  trouble.since = found->since;
  const std::string_view words = found->message;
  if (words.find("persistentvolumeclaim") != words.npos && words.find("not found") != words.npos)
    trouble.failure_class = v1::FAILURE_CLASS_CONFIG;
  return trouble;
}

std::optional<StartTrouble> OfEvents(const PodObject& pod, const std::vector<EventObject>& events) {
  const EventObject* latest = nullptr;
  for (const EventObject& event : events) {
    if (!event.is_warning || event.object_uid != pod.name.uid) continue;
    if (latest == nullptr || event.last_seen > latest->last_seen) latest = &event;
  }
  if (latest == nullptr) return std::nullopt;
  StartTrouble trouble;
  trouble.reason = latest->reason;
  trouble.message = latest->message;
  trouble.since = latest->last_seen;
  // A volume that is named wrongly is mounted never; one whose server is away may be, later.
  const std::string_view words = latest->message;
  if (latest->reason == "FailedMount" && words.find("not found") != words.npos)
    trouble.failure_class = v1::FAILURE_CLASS_CONFIG;
  return trouble;
}

}  // namespace

std::optional<StartTrouble> FindStartTrouble(const PodObject& pod,
                                             const std::vector<EventObject>& events) {
  if (pod.phase != "Pending") return std::nullopt;
  std::optional<StartTrouble> trouble;
  for (const ContainerObject& container : pod.containers) {
    // These say only that a container waits for its pod.
    if (container.reason == "ContainerCreating" || container.reason == "PodInitializing") continue;
    trouble = OfContainer(container);
    if (trouble.has_value()) break;
  }
  if (!trouble.has_value()) trouble = OfScheduling(pod);
  if (!trouble.has_value()) trouble = OfEvents(pod, events);
  if (trouble.has_value() && !trouble->since.has_value()) trouble->since = pod.created;
  return trouble;
}

}  // namespace muster::kubernetes
