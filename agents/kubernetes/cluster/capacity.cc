#include "agents/kubernetes/cluster/capacity.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agents/kubernetes/cluster/fitting.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/manifest/pod_template.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/gpu_types.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// One message names at most so many nodes.
constexpr size_t kMaxNamedShortages = 8;
constexpr uint64_t kCapacityMillis = 1000;

// One thing that a pod asks for.
struct Want {
  std::string what;  // "nvidia.com/gpu", "cpu"
  int64_t needed = 0;
};

std::vector<Want> WantsOf(const RunNeed& need) {
  std::vector<Want> wants;
  for (const auto& [resource, count] : need.each.gpus) wants.push_back({resource, count});
  wants.push_back({"cpu", need.each.cpu_millis});
  wants.push_back({"memory", need.each.memory_bytes});
  wants.push_back({"pods", need.each.pods});
  return wants;
}

int64_t AmountOf(const Amounts& amounts, const std::string& what) {
  if (what == "cpu") return amounts.cpu_millis;
  if (what == "memory") return amounts.memory_bytes;
  if (what == "pods") return amounts.pods;
  return amounts.Gpus(what);
}

std::string Bare(const std::string& what, int64_t amount) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(0, amount));
  if (what == "cpu") return contract::FormatCpus(count);
  if (what == "memory") return contract::FormatBytes(count);
  return fmt::format("{}", count);
}

// Returns the number of the run's pods that have room in that. Asked for each node and run, so
// nothing is made.
int64_t PodsIn(const RunNeed& need, const Amounts& room) {
  const bool is_apart = need.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED;
  int64_t pods = is_apart ? std::min<int64_t>(1, need.pods) : need.pods;
  const auto bound = [&](int64_t there, int64_t needed) {
    if (needed > 0) pods = std::min(pods, there / needed);
  };
  bound(room.cpu_millis, need.each.cpu_millis);
  bound(room.memory_bytes, need.each.memory_bytes);
  bound(room.pods, need.each.pods);
  for (const auto& [resource, count] : need.each.gpus) bound(room.Gpus(resource), count);
  return pods;
}

std::vector<std::string> Lacks(const RunNeed& need, const Amounts& room) {
  std::vector<std::string> lacks;
  for (const Want& want : WantsOf(need)) {
    const int64_t there = AmountOf(room, want.what);
    if (there >= want.needed) continue;
    lacks.push_back(fmt::format("{} {} of {}", Bare(want.what, there), want.what,
                                Bare(want.what, want.needed)));
  }
  return lacks;
}

// Asked for each node and run as well.
using Part = const Amounts& (*)(const NodeRoom&);
const Amounts& AllOf(const NodeRoom& room) { return *room.all; }
const Amounts& FreeOf(const NodeRoom& room) { return room.free; }
const Amounts& ForRunsOf(const NodeRoom& room) { return room.for_runs; }

// Names the node that comes nearest to holding one pod, and what it lacks. `adjective` is "" or
// "free ".
std::string NearestRoom(const RunNeed& need, const std::vector<const NodeRoom*>& nodes, Part part,
                        const char* adjective) {
  for (const Want& want : WantsOf(need)) {
    const NodeRoom* most =
        *std::max_element(nodes.begin(), nodes.end(), [&](const NodeRoom* a, const NodeRoom* b) {
          return AmountOf(part(*a), want.what) < AmountOf(part(*b), want.what);
        });
    const int64_t there = AmountOf(part(*most), want.what);
    if (there >= want.needed) continue;
    return fmt::format("{} has the most {}{}: {}, {} {} needed", most->node->name, adjective,
                       want.what, Bare(want.what, there), Bare(want.what, want.needed),
                       contract::WordFor(want.needed, "is", "are"));
  }
  const NodeRoom* nearest =
      *std::min_element(nodes.begin(), nodes.end(), [&](const NodeRoom* a, const NodeRoom* b) {
        return Lacks(need, part(*a)).size() < Lacks(need, part(*b)).size();
      });
  return fmt::format("no node has all at once; {} comes nearest: it has {}{}", nearest->node->name,
                     adjective, fmt::join(Lacks(need, part(*nearest)), "; "));
}

// Names the node that comes nearest to matching at all, and what is against it.
std::string NearestMatch(const RunNeed& need, const std::vector<NodeRoom>& nodes) {
  const NodeRoom* nearest = nullptr;
  std::vector<std::string> fewest;
  for (const NodeRoom& room : nodes) {
    std::vector<std::string> objections = Objections(need, *room.node);
    if (nearest != nullptr && objections.size() >= fewest.size()) continue;
    nearest = &room;
    fewest = std::move(objections);
  }
  return fmt::format("none of the {} matches; {} comes nearest: it {}",
                     contract::Counted(nodes.size(), "node"), nearest->node->name,
                     fmt::join(fewest, ", and it "));
}

int64_t TotalPods(const RunNeed& need, const std::vector<const NodeRoom*>& nodes, Part part) {
  int64_t pods = 0;
  for (const NodeRoom* room : nodes) pods += PodsIn(need, part(*room));
  return pods;
}

// Returns whether that part of the nodes that take the run has room for all of its pods.
bool HaveRoom(const RunNeed& need, const std::vector<NodeRoom>& nodes, Part part) {
  int64_t pods = 0;
  for (const NodeRoom& room : nodes) {
    if (pods >= need.pods) break;
    const int64_t here = PodsIn(need, part(room));
    if (here > 0 && Objections(need, *room.node).empty() && OutOfService(need, *room.node).empty())
      pods += here;
  }
  return pods >= need.pods;
}

std::string SpreadWords(const RunNeed& need) {
  return need.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED ? ", each on a node of its own"
                                                                 : "";
}

// Returns whether it would fit if no room were kept for another run.
bool IsBehind(const RunNeed& need, const std::vector<const NodeRoom*>& nodes) {
  int64_t pods = 0;
  for (const NodeRoom* room : nodes) {
    Amounts unkept = room->free;
    pods += PodsIn(need, unkept += room->kept);
  }
  return pods >= need.pods;
}

// Searches the nodes that match. Nothing: they would have room if they were empty.
std::optional<Misfit> FindLasting(const RunNeed& need, const std::vector<const NodeRoom*>& nodes) {
  const int64_t pods = TotalPods(need, nodes, AllOf);
  if (pods >= need.pods) return std::nullopt;
  if (pods == 0) return Misfit{true, NearestRoom(need, nodes, AllOf, "")};
  return Misfit{
      true, fmt::format("the {} that {} would have room for {} of the run if they were empty, {} "
                        "are needed{}",
                        contract::Counted(nodes.size(), "node"),
                        contract::WordFor(nodes.size(), "matches", "match"),
                        contract::Counted(pods, "pod"), need.pods, SpreadWords(need))};
}

// "3 nodes match, 2 of them are out of service: node-2 (cordoned), node-3 (not ready)".
std::string OutWords(size_t matching, const std::vector<std::string>& out) {
  return fmt::format("{} {}, {} of them {} out of service: {}", contract::Counted(matching, "node"),
                     contract::WordFor(matching, "matches", "match"), out.size(),
                     contract::WordFor(out.size(), "is", "are"),
                     contract::ListedUpTo(kMaxNamedShortages, out));
}

}  // namespace

Amounts CapacityOf(const NodeObject& node) {
  Amounts all = node.allocatable;
  for (const auto& [resource, count] : node.gpu_capacity)
    all.gpus[resource] = std::max(all.Gpus(resource), count);
  return all;
}

NodeRoom::NodeRoom(NodeObject object)
    : node(std::make_shared<const NodeObject>(std::move(object))),
      all(std::make_shared<const Amounts>(CapacityOf(*node))),
      free(node->allocatable),
      for_runs(node->allocatable) {}

RunNeed NeedOf(const v1::JobSpec& spec, const KubernetesConfig& config) {
  RunNeed need;
  need.name_space = NamespaceOf(spec, config.name_space);
  need.pods = PodCount(spec);
  need.options = spec.kubernetes();
  need.gpu_type_label = config.gpu_type_label;
  const v1::Resources& resources = spec.resources();
  need.each.pods = 1;
  need.each.cpu_millis = static_cast<int64_t>(
      resources.cpu_millis() > 0 ? resources.cpu_millis() : config.default_cpu_millis);
  need.each.memory_bytes = static_cast<int64_t>(
      resources.memory_bytes() > 0 ? resources.memory_bytes() : config.default_memory_bytes);
  const GpuChoice gpus = ChooseGpus(resources, config);
  if (gpus.count == 0) return need;
  need.gpu_resource = gpus.resource;
  need.gpu_type = gpus.type;
  need.each.gpus[gpus.resource] = static_cast<int64_t>(gpus.count);
  return need;
}

RunNeed NeedOf(const agent::v1::Assignment& run, const KubernetesConfig& config) {
  RunNeed need = NeedOf(run.spec(), config);
  need.excluded_nodes.assign(run.excluded_nodes().begin(), run.excluded_nodes().end());
  return need;
}

std::optional<Misfit> FindMisfit(const RunNeed& need, const std::vector<NodeRoom>& nodes) {
  // Most runs fit, and no node is asked about that is full or comes after those that suffice.
  if (HaveRoom(need, nodes, FreeOf)) return std::nullopt;
  // An autoscaler may have taken all of them away.
  if (nodes.empty()) return Misfit{false, "the cluster has no nodes"};
  std::vector<const NodeRoom*> matching, in_service;
  std::vector<std::string> out;
  for (const NodeRoom& room : nodes) {
    if (!Objections(need, *room.node).empty()) continue;
    matching.push_back(&room);
    const std::string why = OutOfService(need, *room.node);
    if (why.empty()) in_service.push_back(&room);
    if (!why.empty()) out.push_back(fmt::format("{} ({})", room.node->name, why));
  }
  if (matching.empty()) return Misfit{true, NearestMatch(need, nodes)};
  if (auto lasting = FindLasting(need, matching); lasting.has_value()) return lasting;
  const int64_t pods = TotalPods(need, in_service, FreeOf);
  std::vector<std::string> words;
  if (!out.empty()) words.push_back(OutWords(matching.size(), out));
  if (pods > 0) {
    words.push_back(fmt::format("there is room for {} of the run now, {} are needed{}",
                                contract::Counted(pods, "pod"), need.pods, SpreadWords(need)));
  } else if (!in_service.empty()) {
    words.push_back(NearestRoom(need, in_service, FreeOf, "free "));
  }
  return Misfit{.words = fmt::format("{}", fmt::join(words, "; ")),
                .is_behind = IsBehind(need, in_service)};
}

bool FitsBesideOthers(const RunNeed& need, const std::vector<NodeRoom>& nodes) {
  return HaveRoom(need, nodes, ForRunsOf);
}

void Reserve(const RunNeed& need, std::vector<NodeRoom>* nodes) {
  int64_t left = need.pods;
  for (NodeRoom& room : *nodes) {
    if (left == 0) return;
    const int64_t pods = std::min(left, PodsIn(need, room.free));
    if (pods == 0) continue;  // most are full, and to know that is cheap
    if (!Objections(need, *room.node).empty() || !OutOfService(need, *room.node).empty()) continue;
    for (int64_t i = 0; i < pods; ++i) room.free -= need.each;
    left -= pods;
  }
}

void KeepShares(const RunNeed& need, std::vector<NodeRoom>* nodes) {
  for (NodeRoom& room : *nodes) {
    if (!Objections(need, *room.node).empty()) continue;
    Amounts share;
    for (int64_t pods = std::min(need.pods, PodsIn(need, room.for_runs)); pods > 0; --pods)
      share += need.each;
    share = LeastOf(share, room.free);
    room.kept += share;
    room.free -= share;
  }
}

std::map<std::string, uint32_t> GpuTypesOf(const NodeObject& node, const Amounts& amounts,
                                           const KubernetesConfig& config) {
  std::map<std::string, uint32_t> types;
  for (const std::string& resource : config.gpu_resources) {
    const int64_t count = amounts.Gpus(resource);
    if (CapacityOf(node).Gpus(resource) == 0) continue;
    const auto label = node.labels.find(config.gpu_type_label);
    const bool has_type = &resource == &config.gpu_resources.front() &&
                          label != node.labels.end() && !label->second.empty();
    types[has_type ? label->second : resource] += static_cast<uint32_t>(count);
  }
  return types;
}

std::set<std::string> GpuLabelsOf(const std::vector<NodeRoom>& nodes,
                                  const KubernetesConfig& config) {
  std::set<std::string> labels;
  if (config.gpu_resources.empty()) return labels;
  for (const NodeRoom& room : nodes) {
    if (room.all->Gpus(config.gpu_resources.front()) == 0) continue;
    const auto label = room.node->labels.find(config.gpu_type_label);
    if (label != room.node->labels.end() && !label->second.empty()) labels.insert(label->second);
  }
  return labels;
}

std::string SpellGpuType(const std::string& type, const std::set<std::string>& labels,
                         const KubernetesConfig& config) {
  for (const std::string& resource : config.gpu_resources) {
    if (contract::NamesGpuResource(type, resource)) return resource;
  }
  const std::vector<std::string> types = contract::FindGpuTypes(type, labels);
  return types.size() == 1 ? types.front() : type;
}

absl::Status CheckGpuType(const v1::GpuRequest& gpus, const std::set<std::string>& labels,
                          const KubernetesConfig& config) {
  if (gpus.type().empty() || SpellGpuType(gpus.type(), labels, config) != gpus.type())
    return absl::OkStatus();
  const std::vector<std::string> types = contract::FindGpuTypes(gpus.type(), labels);
  if (types.size() < 2) return absl::OkStatus();
  return contract::BadField(
      "resources.gpus",
      contract::WhichGpuType(gpus.type(), types,
                             (gpus.count_millis() + kCapacityMillis - 1) / kCapacityMillis));
}

}  // namespace muster::kubernetes
