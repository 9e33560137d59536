#include "agents/kubernetes/objects/objects.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/kubernetes/objects/quantity.h"
#include "contract/characters.h"

namespace muster::kubernetes {
namespace {

// At most so many words of the cluster are kept of each thing, as much as v1::Evidence may hold.
constexpr size_t kMaxWords = 4096;

// Without the line's end, for they stand in the midst of sentences.
std::string Words(const Json& object, const char* path) {
  const std::string text = TextAt(object, path);
  const size_t end = text.find_last_not_of("\r\n \t") + 1;
  return std::string(contract::CutBetweenCharacters(text.substr(0, end), kMaxWords));
}

std::string MarkOf(const Json& marks, const char* name) {
  if (!marks.is_object() || !marks.contains(name) || !marks[name].is_string()) return {};
  return marks[name].get<std::string>();
}

std::string LabelOf(const Json& object, const char* name) {
  return MarkOf(At(object, "metadata/labels"), name);
}

std::string AnnotationOf(const Json& object, const char* name) {
  return MarkOf(At(object, "metadata/annotations"), name);
}

ObjectName ParseName(const Json& object) {
  const Json& metadata = At(object, "metadata");
  return {TextAt(metadata, "namespace"), TextAt(metadata, "name"), TextAt(metadata, "uid"),
          TextAt(metadata, "resourceVersion"), LabelOf(object, kRunLabel)};
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

// `seal` is that of its records.
ContainerObject ParseContainer(const Json& status, bool is_init, const std::string& seal) {
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
  if (container.state == ContainerState::kTerminated)
    container.records = TakeEndRecords(seal, &container.message);
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
std::vector<uint32_t> ParseIndexes(const std::string& text) {
  std::vector<uint32_t> indexes;
  for (const auto word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    uint32_t index = 0;
    if (absl::SimpleAtoi(word, &index)) indexes.push_back(index);
  }
  return indexes;
}

uint32_t IndexOf(const Json& object) {
  uint32_t index = 0;
  (void)absl::SimpleAtoi(AnnotationOf(object, "batch.kubernetes.io/job-completion-index"), &index);
  return index;
}

// The limit of the container's memory, as its spec has it; 0 if none.
uint64_t MemoryLimitOf(const Json& spec, const char* list, const std::string& name) {
  for (const Json& container : At(spec, list)) {
    if (TextAt(container, "name") != name) continue;
    const auto limit = ParseQuantity(TextAt(container, "resources/limits/memory"));
    return limit.has_value() ? static_cast<uint64_t>(std::max<int64_t>(0, *limit)) : 0;
  }
  return 0;
}

// Returns the names and the limits of containers.
Json TrimContainers(const Json& containers) {
  Json kept = Json::array();
  for (const Json& container : containers) {
    kept.push_back({{"name", TextAt(container, "name")},
                    {"resources", {{"limits", At(container, "resources/limits")}}}});
  }
  return kept;
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
      const bool has_limits = key == "containers" || key == "initContainers";
      if (part == "spec" && has_limits && field.is_array()) kept[part][key] = TrimContainers(field);
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
  job.is_held = AnnotationOf(object, kHeldAnnotation) == "true";
  if (At(object, "spec/ttlSecondsAfterFinished").is_number())
    job.time_to_live = NumberAt(object, "spec/ttlSecondsAfterFinished");
  int64_t seconds = 0;
  if (absl::SimpleAtoi(AnnotationOf(object, kTimeToLiveAnnotation), &seconds))
    job.final_time_to_live = seconds;
  job.created = TimeAt(object, "metadata/creationTimestamp");
  job.completions = static_cast<uint32_t>(NumberAt(object, "spec/completions"));
  job.has_success_policy = !At(object, "spec/successPolicy").is_null();
  job.queue = LabelOf(object, kQueueLabel);
  job.leading = ParseIndexes(AnnotationOf(object, kLeadingAnnotation));
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
    const bool is_init = list[7] == 'i';
    for (const Json& status : statuses) {
      ContainerObject container = ParseContainer(status, is_init, pod.job_uid);
      container.memory_limit_bytes = MemoryLimitOf(
          At(object, "spec"), is_init ? "initContainers" : "containers", container.name);
      pod.containers.push_back(std::move(container));
    }
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
