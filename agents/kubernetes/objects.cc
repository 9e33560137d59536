#include "agents/kubernetes/objects.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "contract/characters.h"

namespace muster::kubernetes {
namespace {

// Words of the cluster that are kept of each thing: as much as v1::Evidence may hold.
constexpr size_t kMaxWords = 4096;

std::string Words(const Json& object, const char* path) {
  return std::string(contract::CutBetweenCharacters(TextAt(object, path), kMaxWords));
}

ObjectName ParseName(const Json& object) {
  const Json& metadata = At(object, "metadata");
  const Json& labels = At(metadata, "labels");
  return {TextAt(metadata, "namespace"), TextAt(metadata, "name"), TextAt(metadata, "uid"),
          TextAt(metadata, "resourceVersion"),
          labels.is_object() && labels.contains(kRunLabel) && labels[kRunLabel].is_string()
              ? labels[kRunLabel].get<std::string>()
              : std::string()};
}

std::vector<Condition> ParseConditions(const Json& object) {
  std::vector<Condition> conditions;
  const Json& list = At(object, "status/conditions");
  if (!list.is_array()) return conditions;
  for (const Json& entry : list) {
    Condition condition{TextAt(entry, "type"), TextAt(entry, "status") == "True",
                        TextAt(entry, "reason"), Words(entry, "message"),
                        TimeAt(entry, "lastTransitionTime")};
    if (condition.is_true || condition.type == "PodScheduled")
      conditions.push_back(std::move(condition));
  }
  return conditions;
}

const Condition* FindTrue(const std::vector<Condition>& conditions, const char* type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& c) { return c.is_true && c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

ContainerObject ParseContainer(const Json& status, bool is_init) {
  ContainerObject container;
  container.name = TextAt(status, "name");
  container.is_init = is_init;
  container.restarts = static_cast<int>(NumberAt(status, "restartCount"));
  const Json* state = &At(status, "state/waiting");
  if (const Json& terminated = At(status, "state/terminated"); terminated.is_object()) {
    container.state = ContainerState::kTerminated;
    state = &terminated;
  } else if (const Json& running = At(status, "state/running"); running.is_object()) {
    container.state = ContainerState::kRunning;
    state = &running;
  }
  container.reason = TextAt(*state, "reason");
  container.message = Words(*state, "message");
  container.exit_code = static_cast<int>(NumberAt(*state, "exitCode"));
  container.signal = static_cast<int>(NumberAt(*state, "signal"));
  container.started = TimeAt(*state, "startedAt");
  container.finished = TimeAt(*state, "finishedAt");
  return container;
}

// The object has the time at which its grace is over.
std::optional<absl::Time> DeletionTime(const Json& object) {
  const std::optional<absl::Time> end = TimeAt(object, "metadata/deletionTimestamp");
  if (!end.has_value()) return std::nullopt;
  return *end - absl::Seconds(NumberAt(object, "metadata/deletionGracePeriodSeconds"));
}

std::string OwnerUid(const Json& object, const char* kind) {
  const Json& owners = At(object, "metadata/ownerReferences");
  if (!owners.is_array()) return {};
  for (const Json& owner : owners) {
    if (TextAt(owner, "kind") == kind) return TextAt(owner, "uid");
  }
  return {};
}

// Empty: there is none. Names of annotations have slashes, so At cannot find them.
std::string AnnotationOf(const Json& object, const char* name) {
  const Json& annotations = At(object, "metadata/annotations");
  if (!annotations.is_object() || !annotations.contains(name) || !annotations[name].is_string())
    return {};
  return annotations[name].get<std::string>();
}

uint32_t IndexOf(const Json& object) {
  uint32_t index = 0;
  (void)absl::SimpleAtoi(AnnotationOf(object, "batch.kubernetes.io/job-completion-index"), &index);
  return index;
}

}  // namespace

const Condition* JobObject::Find(const char* type) const { return FindTrue(conditions, type); }
const Condition* PodObject::Find(const char* type) const { return FindTrue(conditions, type); }

Json TrimObject(const Json& object) {
  Json kept = Json::object();
  for (const auto& [part, value] : object.items()) {
    if (!value.is_object()) {
      kept[part] = value;
      continue;
    }
    for (const auto& [key, field] : value.items()) {
      const bool counts = part == "spec" ? field.is_primitive() : key != "managedFields";
      if (counts) kept[part][key] = field;
    }
  }
  return kept;
}

JobObject ParseJob(const Json& object) {
  JobObject job;
  job.name = ParseName(object);
  job.is_suspended = FlagAt(object, "spec/suspend");
  job.is_launch_complete = AnnotationOf(object, kLaunchAnnotation) == kLaunchComplete;
  if (At(object, "spec/ttlSecondsAfterFinished").is_number())
    job.time_to_live = NumberAt(object, "spec/ttlSecondsAfterFinished");
  int64_t seconds = 0;
  if (absl::SimpleAtoi(AnnotationOf(object, kTimeToLiveAnnotation), &seconds))
    job.final_time_to_live = seconds;
  job.created = TimeAt(object, "metadata/creationTimestamp");
  job.completions = static_cast<uint32_t>(NumberAt(object, "spec/completions"));
  job.has_success_policy = !At(object, "spec/successPolicy").is_null();
  job.deletion_time = DeletionTime(object);
  job.start_time = TimeAt(object, "status/startTime");
  job.conditions = ParseConditions(object);
  return job;
}

PodObject ParsePod(const Json& object) {
  PodObject pod;
  pod.name = ParseName(object);
  pod.job_uid = OwnerUid(object, "Job");
  pod.index = IndexOf(object);
  pod.node = TextAt(object, "spec/nodeName");
  pod.phase = TextAt(object, "status/phase");
  pod.reason = TextAt(object, "status/reason");
  pod.message = Words(object, "status/message");
  pod.created = TimeAt(object, "metadata/creationTimestamp");
  pod.deletion_time = DeletionTime(object);
  pod.deletion_grace = absl::Seconds(NumberAt(object, "metadata/deletionGracePeriodSeconds"));
  pod.conditions = ParseConditions(object);
  for (const char* list : {"status/initContainerStatuses", "status/containerStatuses"}) {
    const Json& statuses = At(object, list);
    if (!statuses.is_array()) continue;
    for (const Json& status : statuses)
      pod.containers.push_back(ParseContainer(status, list[7] == 'i'));
  }
  return pod;
}

EventObject ParseEvent(const Json& object) {
  EventObject event;
  event.uid = TextAt(object, "metadata/uid");
  event.object = TextAt(object, "involvedObject/name");
  event.object_uid = TextAt(object, "involvedObject/uid");
  event.is_warning = TextAt(object, "type") == "Warning";
  event.reason = TextAt(object, "reason");
  event.message = Words(object, "message");
  const std::optional<absl::Time> once = TimeAt(object, "eventTime");
  event.first_seen = TimeAt(object, "firstTimestamp");
  if (!event.first_seen.has_value()) event.first_seen = once;
  event.last_seen = TimeAt(object, "series/lastObservedTime");
  if (!event.last_seen.has_value()) event.last_seen = TimeAt(object, "lastTimestamp");
  if (!event.last_seen.has_value()) event.last_seen = once;
  return event;
}

}  // namespace muster::kubernetes
