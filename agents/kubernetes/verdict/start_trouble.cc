// Explains why a pod does not start.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "agents/kubernetes/verdict/explain_failure.h"
#include "agents/kubernetes/verdict/verdict.h"
#include "contract/counted.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

struct Trouble {
  std::string_view reason;
  bool is_final;  // at once: waiting cannot help
  v1::FailureClass failure_class;
};

// This is the word for a side-car that others have put into the pod as an init container: those
// that Muster makes are never started again.
constexpr std::string_view kCrashLoop = "CrashLoopBackOff";

// Reasons for which a container waits. Source: pkg/kubelet/images/types.go and
// pkg/kubelet/container/sync_result.go of Kubernetes.
constexpr auto kImage = v1::FAILURE_CLASS_IMAGE;
constexpr auto kConfig = v1::FAILURE_CLASS_CONFIG;
constexpr std::array<Trouble, 13> kTroubles = {{
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
    {kCrashLoop, false, kConfig},
}};

// These are words of a refused pod that waiting does not help; a quota may have room later, and a
// webhook that does not answer may recover. Sources: plugin/pkg/admission and
// staging/src/k8s.io/apiserver/pkg/admission of Kubernetes.
constexpr std::array<std::string_view, 8> kRefusals = {"violates PodSecurity",
                                                       "denied the request",
                                                       "denied request: ",
                                                       "error looking up service account",
                                                       "no PriorityClass with",
                                                       "RuntimeClass",
                                                       "usage per ",
                                                       "Invalid value"};

// These are words of a runtime about a pull that failed because the registry does not answer, or
// limits pulls; an image that the registry does not have, or does not give, is the job's fault.
// Sources: containerd's and CRI-O's resolvers, Go's net, the registries' own answers.
constexpr std::array<std::string_view, 20> kRegistrysDoing = {"toomanyrequests",
                                                              "Too Many Requests",
                                                              "pull QPS exceeded",
                                                              "rate limit",
                                                              "i/o timeout",
                                                              "timed out",
                                                              "TLS handshake timeout",
                                                              "deadline exceeded",
                                                              "Client.Timeout",
                                                              "connection refused",
                                                              "connection reset",
                                                              "no route to host",
                                                              "network is unreachable",
                                                              "server misbehaving",
                                                              ": EOF",
                                                              "Internal Server Error",
                                                              "Bad Gateway",
                                                              "Service Unavailable",
                                                              "Gateway Timeout",
                                                              "context canceled"};
// A registry's words about an image that it does not give, or does not have. It may say both: then
// it gives it to others, perhaps. Sources: the errors of the distribution protocol, and how the
// runtimes tell them.
constexpr std::array<std::string_view, 5> kDenied = {"401 Unauthorized", "403 Forbidden",
                                                     "unauthorized", "authorization failed",
                                                     "access to the resource is denied"};
constexpr std::array<std::string_view, 3> kNoSuchImage = {"not found", "manifest unknown",
                                                          "name unknown"};
// Words about a pull for which the node has no room.
constexpr std::string_view kDiskFull = "no space left on device";

// These are warnings of the containers themselves; those of a node, a sandbox or a volume say
// nothing of an image. Source: pkg/kubelet/events of Kubernetes.
constexpr std::array<std::string_view, 5> kOfContainers = {
    "Failed", "BackOff", "InspectFailed", "ErrImageNeverPull", "FailedPostStartHook"};

// An event that came longer ago, and not since, has passed: the kubelet tries a pull again after 5
// min at most, and queues begin to let go again after one minute (Kueue's requeuingStrategy).
constexpr absl::Duration kHasPassed = absl::Minutes(10);

// The kubelet tries to mount a volume again each 2 min 2 s or more often.
constexpr absl::Duration kMountIsTriedAgain = absl::Minutes(3);

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The scheduler's words about a claim without a volume, whose reason others know.
constexpr char kUnbound[] = "unbound immediate PersistentVolumeClaims";
constexpr char kWhyUnbound[] =
    "; the run waits until its claim has a volume: kubectl describe pvc, in its namespace, tells "
    "why "
    "it has none";

StartTrouble OfContainer(const ContainerObject& container) {
  const auto* known = std::find_if(kTroubles.begin(), kTroubles.end(), [&](const Trouble& trouble) {
    return trouble.reason == container.reason;
  });
  StartTrouble trouble;
  trouble.reason = container.reason;
  trouble.message = container.message;
  if (known == kTroubles.end()) return trouble;
  // The kubelet's own words are how long it waits this time.
  if (trouble.reason == kCrashLoop) {
    trouble.message = fmt::format("{} \"{}\" has ended and was started again {}",
                                  container.is_init ? "the init container" : "the container",
                                  container.name, contract::Counted(container.restarts, "time"));
  }
  trouble.is_final = known->is_final;
  trouble.failure_class = known->failure_class;
  return trouble;
}

// Each try to pull ends in words of its own and then in those of the back-off; what is told is why,
// and stays the same.
void Explain(const PodObject& pod, const std::vector<EventObject>& events, StartTrouble* trouble) {
  constexpr std::string_view kTried = "ErrImagePull";
  constexpr std::string_view kBackOffPrefix = "ErrImagePull: ";
  constexpr std::string_view kFailed = "Failed to pull image";
  if (trouble->reason != kTried && trouble->reason != "ImagePullBackOff" &&
      trouble->reason != "RegistryUnavailable")
    return;
  trouble->is_registrys = trouble->reason == "RegistryUnavailable";
  trouble->reason = kTried;
  if (const size_t at = trouble->message.find(kBackOffPrefix); at != std::string::npos)
    trouble->message.erase(0, at + kBackOffPrefix.size());
  const EventObject* latest = nullptr;
  for (const EventObject& event : events) {
    if (event.object_uid != pod.name.uid || !event.message.starts_with(kFailed)) continue;
    if (latest == nullptr || event.last_seen > latest->last_seen) latest = &event;
  }
  if (latest != nullptr) trouble->message = latest->message;
  trouble->is_nodes = Has(trouble->message, kDiskFull);
  trouble->is_registrys |=
      std::any_of(kRegistrysDoing.begin(), kRegistrysDoing.end(),
                  [&](std::string_view words) { return Has(trouble->message, words); });
}

// No scheduler looks at a pod that names a scheduler which is not there. Others take milliseconds.
std::optional<StartTrouble> OfSilence(const PodObject& pod, absl::Time now) {
  constexpr absl::Duration kLooks = absl::Seconds(10);
  const absl::Time created = pod.created.value_or(now);
  if (!pod.node.empty() || pod.deletion_time.has_value() || now - created < kLooks)
    return std::nullopt;
  StartTrouble trouble;
  trouble.code = v1::STATE_REASON_CODE_WAITS_IN_CLUSTER;
  trouble.message =
      "no scheduler has looked at its pod: is there one of the name that "
      "kubernetes.scheduler_name gives?";
  trouble.since = pod.created;
  return trouble;
}

// A thing that the scheduler cannot find may still come, but for a claim that nobody is about to
// make.
std::optional<StartTrouble> OfScheduling(const PodObject& pod, absl::Time now) {
  const Condition* found = FindUnscheduled(pod);
  if (found == nullptr) {
    return pod.Find("PodScheduled") == nullptr ? OfSilence(pod, now) : std::nullopt;
  }
  StartTrouble trouble;
  trouble.code = v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES;
  trouble.reason = found->reason;
  trouble.message = WithoutEcho(found->message);
  trouble.is_of_claims = Has(found->message, kUnbound);
  if (trouble.is_of_claims) trouble.message += kWhyUnbound;
  trouble.since = found->since;
  if (Has(found->message, "persistentvolumeclaim") && Has(found->message, "not found")) {
    trouble.code = v1::STATE_REASON_CODE_CANNOT_START;
    trouble.failure_class = v1::FAILURE_CLASS_CONFIG;
    trouble.is_of_missing = true;
  }
  return trouble;
}

const EventObject* LatestWarning(const std::string& object_uid,
                                 const std::vector<EventObject>& events) {
  const EventObject* latest = nullptr;
  for (const EventObject& event : events) {
    if (!event.is_warning || event.object_uid != object_uid) continue;
    if (latest == nullptr || event.last_seen > latest->last_seen) latest = &event;
  }
  return latest;
}

// Returns since when Warnings like this have come up to now, without a break in which it had
// passed. Warnings about pods that are there no more count as well, because a queue that takes a
// run back and lets it go again makes other pods.
template <typename Filter>
std::optional<absl::Time> FirstSeen(const std::vector<EventObject>& events, absl::Time now,
                                    const Filter& is_like) {
  std::vector<std::pair<absl::Time, absl::Time>> seen;  // last, first
  for (const EventObject& event : events) {
    if (!event.is_warning || !event.first_seen.has_value() || !is_like(event)) continue;
    seen.emplace_back(event.last_seen.value_or(*event.first_seen), *event.first_seen);
  }
  std::sort(seen.rbegin(), seen.rend());
  std::optional<absl::Time> first;
  for (const auto& [last, begun] : seen) {
    if (last + kHasPassed < first.value_or(now)) break;
    first = std::min(begun, first.value_or(begun));
  }
  return first;
}

// Returns "k7m2-42-1-0" for "k7m2-42-1-0-x8f2p", which the pods of one rank have in common.
std::string_view RankOf(std::string_view pod_name) {
  return pod_name.substr(0, pod_name.rfind('-'));
}

// A volume that is named wrongly is mounted never; one whose server is away may be, later. About a
// key the kubelet says "references non-existent secret key".
bool IsOfAMissingVolume(const EventObject& event) {
  return event.reason == "FailedMount" &&
         (Has(event.message, "not found") || Has(event.message, "non-existent"));
}

// Returns whether what the Warning tells may last. A pod that has its sandbox has its volumes;
// clusters before 1.29 do not say so, but there the kubelet would have tried again.
bool MayLast(const EventObject& event, const PodObject& pod, absl::Time now) {
  const bool is_of_sandbox = event.reason == "FailedMount" ||
                             event.reason == "FailedAttachVolume" ||
                             event.reason == "FailedCreatePodSandBox";
  const Condition* made = pod.Find("PodReadyToStartContainers");
  if (is_of_sandbox && made != nullptr && made->is_true) return false;
  return event.reason != "FailedMount" || !event.last_seen.has_value() ||
         now - *event.last_seen < kMountIsTriedAgain;
}

std::optional<StartTrouble> OfEvents(const PodObject& pod, const std::vector<EventObject>& events,
                                     absl::Time now) {
  const EventObject* latest = LatestWarning(pod.name.uid, events);
  if (latest == nullptr || !MayLast(*latest, pod, now)) return std::nullopt;
  StartTrouble trouble;
  trouble.reason = latest->reason;
  trouble.message = latest->message;
  trouble.since = latest->first_seen;
  if (!IsOfAMissingVolume(*latest)) return trouble;
  trouble.failure_class = v1::FAILURE_CLASS_CONFIG;
  trouble.is_of_missing = true;
  trouble.last_seen = latest->last_seen;
  trouble.since = FirstSeen(events, now, [&](const EventObject& event) {
    return IsOfAMissingVolume(event) && RankOf(event.object) == RankOf(pod.name.name);
  });
  return trouble;
}

// A container does not say since when it waits. That is since the first Warning of a container of
// this rank; or, where their watch is behind, or nobody wrote one, since it was first seen to wait.
absl::Time SinceOf(const PodObject& pod, const std::vector<EventObject>& events, absl::Time now) {
  const std::optional<absl::Time> first = FirstSeen(events, now, [&](const EventObject& event) {
    return RankOf(event.object) == RankOf(pod.name.name) &&
           std::count(kOfContainers.begin(), kOfContainers.end(), event.reason) > 0;
  });
  return first.has_value() ? *first : pod.waiting_since.value_or(now);
}

// Not one that only waits for its pod.
bool HasTrouble(const ContainerObject& container) {
  return container.state == ContainerState::kWaiting && !container.reason.empty() &&
         container.reason != "ContainerCreating" && container.reason != "PodInitializing";
}

// Each try has another name for its pod: "k7m2-42-1-x8f2p" becomes "k7m2-42-1-...".
std::string WithoutTry(std::string message, const std::string& job_name) {
  const std::string start = "\"" + job_name + "-";
  const size_t at = message.find(start);
  const size_t end = at == message.npos ? at : message.find('"', at + start.size());
  if (end != message.npos) message.replace(at + start.size(), end - at - start.size(), "...");
  return message;
}

}  // namespace

std::string WithoutEcho(std::string words) {
  constexpr std::string_view kEcho = ". not found";
  if (words.ends_with(kEcho)) words.resize(words.size() - kEcho.size());
  return words;
}

bool WaitsForClaims(const std::vector<PodObject>& pods) {
  return std::any_of(pods.begin(), pods.end(), [](const PodObject& pod) {
    const Condition* found = pod.phase == "Pending" ? FindUnscheduled(pod) : nullptr;
    return found != nullptr && Has(found->message, kUnbound);
  });
}

bool IsKeptWaiting(const PodObject& pod) {
  // One that ends again and again runs in between, and keeps its pod waiting all the same.
  const auto keeps = [](const ContainerObject& container) {
    return HasTrouble(container) || (container.is_init && container.restarts > 0);
  };
  return pod.phase == "Pending" && std::any_of(pod.containers.begin(), pod.containers.end(), keeps);
}

std::optional<StartTrouble> FindStartTrouble(const PodObject& pod,
                                             const std::vector<EventObject>& events,
                                             absl::Time now) {
  if (pod.phase != "Pending") return std::nullopt;
  std::optional<StartTrouble> trouble;
  for (const ContainerObject& container : pod.containers) {
    if (!HasTrouble(container)) continue;
    trouble = OfContainer(container);
    Explain(pod, events, &*trouble);
    trouble->since = SinceOf(pod, events, now);
    break;
  }
  if (!trouble.has_value()) trouble = OfScheduling(pod, now);
  if (!trouble.has_value()) trouble = OfEvents(pod, events, now);
  if (trouble.has_value() && !trouble->since.has_value()) trouble->since = pod.created;
  return trouble;
}

std::optional<StartTrouble> FindCreateTrouble(const JobObject& job,
                                              const std::vector<EventObject>& events,
                                              absl::Time now) {
  const EventObject* latest = LatestWarning(job.name.uid, events);
  if (latest == nullptr || latest->reason != "FailedCreate") return std::nullopt;
  // A fault that was reported before the Job was let go anew may have been mended.
  if (job.start_time.has_value() && latest->last_seen.has_value() &&
      *latest->last_seen < *job.start_time)
    return std::nullopt;
  StartTrouble trouble;
  trouble.reason = latest->reason;
  trouble.message = WithoutTry(latest->message, job.name.name);
  trouble.since = job.start_time;
  const auto is_refusal = [](const EventObject& event) {
    return event.reason == "FailedCreate" &&
           std::any_of(kRefusals.begin(), kRefusals.end(),
                       [&](std::string_view words) { return Has(event.message, words); });
  };
  if (!is_refusal(*latest)) return trouble;
  trouble.failure_class = kConfig;
  // A queue that lets the run go again gives it another start.
  const std::optional<absl::Time> first = FirstSeen(events, now, is_refusal);
  if (first.has_value()) trouble.since = std::min(*first, trouble.since.value_or(*first));
  return trouble;
}

contract::FailureCause CauseOf(const StartTrouble& trouble) {
  using contract::FailureCause;
  if (trouble.is_nodes) return FailureCause::kNodeDiskFull;
  if (trouble.is_registrys) return FailureCause::kRegistryFails;
  if (trouble.is_of_claims) return FailureCause::kClaimUnbound;
  if (trouble.is_of_missing) return FailureCause::kMissingInNamespace;
  if (trouble.reason == "CrashLoopBackOff") return FailureCause::kCrashLoop;
  return trouble.failure_class == v1::FAILURE_CLASS_IMAGE ? FailureCause::kPullSecret
                                                          : FailureCause::kNone;
}

v1::StateReason WhileItLasts(const RunFacts& facts, const StartTrouble& trouble,
                             const std::string& whose, const Patience& patience) {
  contract::ReasonParts parts = {.detail = trouble.message,
                                 .scheduler_reason = trouble.reason,
                                 .subject = whose,
                                 .since = trouble.since};
  if (trouble.failure_class == v1::FAILURE_CLASS_UNSPECIFIED)
    return contract::MakeReason(trouble.code, parts);
  parts.until = trouble.since.value_or(facts.now) + patience.start_grace;
  parts.remedy = contract::RemedyWhileWaiting(FailureCodeOf(trouble), CauseOf(trouble));
  return contract::MakeReason(v1::STATE_REASON_CODE_CANNOT_START, parts);
}

v1::FailureCode FailureCodeOf(const StartTrouble& trouble) {
  if (trouble.failure_class != v1::FAILURE_CLASS_IMAGE) return v1::FAILURE_CODE_CANNOT_START;
  if (trouble.is_nodes) return v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE;
  if (trouble.is_registrys) return v1::FAILURE_CODE_REGISTRY_UNAVAILABLE;
  if (trouble.reason == "InvalidImageName") return v1::FAILURE_CODE_IMAGE_NAME_INVALID;
  const auto says = [&](std::string_view words) { return Has(trouble.message, words); };
  if (std::any_of(kDenied.begin(), kDenied.end(), says))
    return v1::FAILURE_CODE_IMAGE_ACCESS_DENIED;
  if (trouble.reason == "ErrImageNeverPull" ||
      std::any_of(kNoSuchImage.begin(), kNoSuchImage.end(), says))
    return v1::FAILURE_CODE_IMAGE_NOT_FOUND;
  return v1::FAILURE_CODE_IMAGE_UNAVAILABLE;
}

v1::FailurePhase PhaseOf(const StartTrouble& trouble) {
  if (trouble.failure_class == v1::FAILURE_CLASS_IMAGE) return v1::FAILURE_PHASE_IMAGE;
  if (trouble.is_of_claims || trouble.is_of_missing) return v1::FAILURE_PHASE_FILES;
  return v1::FAILURE_PHASE_COMMAND_START;
}

}  // namespace muster::kubernetes
