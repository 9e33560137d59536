#include "agents/kubernetes/objects/node_objects.h"

#include <algorithm>
#include <optional>

#include "agents/kubernetes/objects/objects.h"
#include "agents/kubernetes/objects/quantity.h"
#include "contract/gpu_types.h"

namespace muster::kubernetes {
namespace {

// Words of a node's condition that are kept.
constexpr size_t kMaxReason = 500;

// Returns a resource of `list`; its name may have a '/', so that it is no path.
int64_t AmountAt(const Json& list, const std::string& resource, bool in_thousandths) {
  if (!list.is_object()) return 0;
  const auto found = list.find(resource);
  if (found == list.end() || !found->is_string()) return 0;
  const std::string text = found->get<std::string>();
  const std::optional<int64_t> amount =
      in_thousandths ? ParseMilliQuantity(text) : ParseQuantity(text);
  return std::max<int64_t>(0, amount.value_or(0));
}

Amounts ParseAmounts(const Json& list, const std::vector<std::string>& gpu_resources) {
  Amounts amounts;
  amounts.cpu_millis = AmountAt(list, "cpu", true);
  amounts.memory_bytes = AmountAt(list, "memory", false);
  amounts.pods = AmountAt(list, "pods", false);
  for (const std::string& resource : gpu_resources) {
    if (const int64_t count = AmountAt(list, resource, false); count > 0)
      amounts.gpus[resource] = count;
  }
  return amounts;
}

Amounts GreaterOf(const Amounts& a, const Amounts& b) {
  Amounts greater = a;
  greater.cpu_millis = std::max(a.cpu_millis, b.cpu_millis);
  greater.memory_bytes = std::max(a.memory_bytes, b.memory_bytes);
  for (const auto& [resource, count] : b.gpus)
    greater.gpus[resource] = std::max(a.Gpus(resource), count);
  return greater;
}

// Sums the requests of all containers of a pod, in the order in which they start.
Amounts ContainerRequests(const Json& spec, const std::vector<std::string>& gpu_resources) {
  Amounts sidecars, most_at_start, all;
  for (const Json& container : At(spec, "initContainers")) {
    Amounts requests = ParseAmounts(At(container, "resources/requests"), gpu_resources);
    requests += sidecars;
    // A sidecar stays.
    if (TextAt(container, "restartPolicy") == "Always") sidecars = requests;
    most_at_start = GreaterOf(most_at_start, requests);
  }
  for (const Json& container : At(spec, "containers"))
    all += ParseAmounts(At(container, "resources/requests"), gpu_resources);
  all += sidecars;
  return GreaterOf(all, most_at_start);
}

}  // namespace

Amounts& Amounts::operator+=(const Amounts& other) {
  cpu_millis += other.cpu_millis;
  memory_bytes += other.memory_bytes;
  pods += other.pods;
  for (const auto& [resource, count] : other.gpus) gpus[resource] += count;
  return *this;
}

Amounts LeastOf(const Amounts& a, const Amounts& b) {
  Amounts least = {std::min(a.cpu_millis, b.cpu_millis), std::min(a.memory_bytes, b.memory_bytes),
                   std::min(a.pods, b.pods)};
  for (const auto& [resource, count] : a.gpus) {
    if (const int64_t both = std::min(count, b.Gpus(resource)); both > 0)
      least.gpus[resource] = both;
  }
  return least;
}

Amounts& Amounts::operator-=(const Amounts& other) {
  const auto take = [](int64_t* from, int64_t amount) {
    *from = std::max<int64_t>(0, *from - amount);
  };
  take(&cpu_millis, other.cpu_millis);
  take(&memory_bytes, other.memory_bytes);
  take(&pods, other.pods);
  for (const auto& [resource, count] : other.gpus) {
    const auto mine = gpus.find(resource);
    if (mine == gpus.end()) continue;
    take(&mine->second, count);
    if (mine->second == 0) gpus.erase(mine);
  }
  return *this;
}

int64_t Amounts::Gpus(const std::string& resource) const {
  const auto found = gpus.find(resource);
  return found == gpus.end() ? 0 : found->second;
}

NodeObject ParseNode(const Json& object, const std::vector<std::string>& gpu_resources) {
  NodeObject node;
  node.name = TextAt(object, "metadata/name");
  node.unschedulable = FlagAt(object, "spec/unschedulable");
  node.not_ready_reason = "its kubelet has not said that it is ready";
  for (const Json& condition : At(object, "status/conditions")) {
    if (TextAt(condition, "type") != "Ready") continue;
    node.ready = TextAt(condition, "status") == "True";
    node.not_ready_reason = TextAt(condition, "message").substr(0, kMaxReason);
  }
  if (node.ready) node.not_ready_reason.clear();
  for (const Json& taint : At(object, "spec/taints"))
    node.taints.push_back({TextAt(taint, "key"), TextAt(taint, "value"), TextAt(taint, "effect")});
  const Json& labels = At(object, "metadata/labels");
  for (const auto& [key, value] : labels.items()) {
    if (value.is_string()) node.labels[key] = value.get<std::string>();
  }
  node.allocatable = ParseAmounts(At(object, "status/allocatable"), gpu_resources);
  node.gpu_capacity = ParseAmounts(At(object, "status/capacity"), gpu_resources).gpus;
  return node;
}

PodUse ParsePodUse(const Json& object, const std::vector<std::string>& gpu_resources) {
  PodUse pod;
  pod.key = TextAt(object, "metadata/uid");
  pod.name_space = TextAt(object, "metadata/namespace");
  pod.node = TextAt(object, "spec/nodeName");
  for (const Json& owner : At(object, "metadata/ownerReferences")) {
    if (TextAt(owner, "kind") == "Job") pod.job_uid = TextAt(owner, "uid");
  }
  const Json& labels = At(object, "metadata/labels");
  pod.is_own = labels.is_object() && labels.contains(kRunLabel);
  if (pod.is_own && labels[kRunLabel].is_string())
    pod.run_key = labels[kRunLabel].get<std::string>();
  const Json& spec = At(object, "spec");
  pod.requests = ContainerRequests(spec, gpu_resources);
  const Json& own = At(spec, "resources/requests");
  if (own.is_object() && own.contains("cpu")) pod.requests.cpu_millis = AmountAt(own, "cpu", true);
  if (own.is_object() && own.contains("memory"))
    pod.requests.memory_bytes = AmountAt(own, "memory", false);
  pod.requests += ParseAmounts(At(spec, "overhead"), gpu_resources);
  pod.requests.pods = 1;
  return pod;
}

Json TrimPod(const Json& object) {
  const auto keep = [](const Json& from, std::initializer_list<const char*> keys) {
    Json kept = Json::object();
    for (const char* key : keys) {
      if (from.is_object() && from.contains(key)) kept[key] = from[key];
    }
    return kept;
  };
  Json pod = {{"metadata", keep(At(object, "metadata"),
                                {"uid", "namespace", "ownerReferences", "resourceVersion"})},
              {"spec", keep(At(object, "spec"), {"nodeName", "overhead", "resources"})},
              {"status", keep(At(object, "status"), {"phase"})}};
  const Json& labels = At(object, "metadata/labels");
  if (labels.is_object() && labels.contains(kRunLabel))
    pod["metadata"]["labels"][kRunLabel] = labels[kRunLabel];
  for (const char* list : {"containers", "initContainers"}) {
    const Json& containers = At(At(object, "spec"), list);
    for (const Json& container : containers)
      pod["spec"][list].push_back(keep(container, {"resources", "restartPolicy"}));
  }
  return pod;
}

bool HasPodEnded(const Json& object) {
  const std::string phase = TextAt(object, "status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace muster::kubernetes
