// Nodes, their GPUs, and what bounds a namespace.
#include <algorithm>
#include <utility>

#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/cluster/capacity.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// One line names at most so many nodes.
constexpr size_t kMaxNamedNodes = 8;
// The GPU operator sets it where it has seen one. Source:
// https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md.
constexpr char kGpuPresent[] = "nvidia.com/gpu.present";

std::string Named(std::vector<std::string> names) {
  if (names.size() > kMaxNamedNodes) {
    names.resize(kMaxNamedNodes);
    names.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <typename Predicate>
std::vector<std::string> NamesWhere(const std::vector<NodeObject>& nodes, Predicate predicate) {
  std::vector<std::string> names;
  for (const NodeObject& node : nodes) {
    if (predicate(node)) names.push_back(node.name);
  }
  return names;
}

// Returns the commands, for as many nodes as one line names.
std::string RemedyForNodes(std::vector<std::string> lost, std::vector<std::string> cordoned) {
  std::vector<std::string> words;
  for (auto& [names, command] : {std::pair(&lost, "see kubectl describe node"),
                                 std::pair(&cordoned, "let pods in again: kubectl uncordon")}) {
    if (names->empty()) continue;
    if (names->size() > kMaxNamedNodes) names->resize(kMaxNamedNodes);
    words.push_back(fmt::format("{} {}", command, fmt::join(*names, " ")));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

bool HasGpus(const NodeObject& node) { return !node.allocatable.gpus.empty(); }

}  // namespace

void JudgeNodes(const absl::StatusOr<std::vector<NodeObject>>& nodes, agents::CheckList* checks) {
  constexpr char kSubject[] = "nodes";
  if (absl::IsPermissionDenied(nodes.status())) {
    return checks->Skip(v1::CHECK_CODE_NODES, kSubject,
                        fmt::format("they may not be listed, so they are not known: {}",
                                    ToStd(nodes.status().message())));
  }
  if (!nodes.ok()) {
    return checks->Fail(v1::CHECK_CODE_NODES, kSubject,
                        std::string(ToStd(nodes.status().message())),
                        "see that the API server is well");
  }
  const std::vector<std::string> lost =
      NamesWhere(*nodes, [](const NodeObject& node) { return !node.ready; });
  const std::vector<std::string> cordoned =
      NamesWhere(*nodes, [](const NodeObject& node) { return node.ready && node.unschedulable; });
  std::string seen = fmt::format("{} of {} in service",
                                 nodes->size() - lost.size() - cordoned.size(), nodes->size());
  if (!lost.empty()) seen += fmt::format("; not ready: {}", Named(lost));
  if (!cordoned.empty()) seen += fmt::format("; cordoned: {}", Named(cordoned));
  if (lost.size() + cordoned.size() == nodes->size())
    return checks->Fail(v1::CHECK_CODE_NODES, kSubject, seen,
                        nodes->empty() ? "see kubectl get nodes" : RemedyForNodes(lost, cordoned));
  if (!lost.empty())
    return checks->Warn(v1::CHECK_CODE_NODES, kSubject, seen, RemedyForNodes(lost, {}));
  checks->Ok(v1::CHECK_CODE_NODES, kSubject, seen);
}

void JudgeGpus(const std::vector<NodeObject>& nodes, const KubernetesConfig& config,
               agents::CheckList* checks) {
  constexpr char kSubject[] = "GPUs";
  std::map<std::string, uint32_t> types;
  for (const NodeObject& node : nodes) {
    for (const auto& [type, count] : GpuTypesOf(node, node.allocatable, config))
      types[type] += count;
  }
  const std::vector<std::string> hidden = NamesWhere(nodes, [](const NodeObject& node) {
    const auto label = node.labels.find(kGpuPresent);
    return label != node.labels.end() && label->second == "true" && !HasGpus(node);
  });
  constexpr char kPlugin[] =
      "install the GPU operator or the vendor's device plug-in, see its pods on these nodes, or "
      "set kubernetes.gpu_resources to the names that the nodes offer";
  if (types.empty()) {
    return checks->Warn(v1::CHECK_CODE_GPUS, kSubject,
                        fmt::format("no node offers {}{}", fmt::join(config.gpu_resources, " or "),
                                    hidden.empty() ? ""
                                                   : ", though the label nvidia.com/gpu.present "
                                                     "says that there are some: " +
                                                         Named(hidden)),
                        kPlugin);
  }
  std::vector<std::string> counts;
  for (const auto& [type, count] : types) counts.push_back(fmt::format("{} {}", count, type));
  const std::string seen = fmt::format("{}", fmt::join(counts, ", "));
  if (!hidden.empty()) {
    return checks->Warn(v1::CHECK_CODE_GPUS, kSubject,
                        fmt::format("{}; the label nvidia.com/gpu.present says that there are more "
                                    "on {}",
                                    seen, Named(hidden)),
                        kPlugin);
  }
  const std::vector<std::string> untyped = NamesWhere(nodes, [&](const NodeObject& node) {
    return !config.gpu_resources.empty() &&
           node.allocatable.Gpus(config.gpu_resources.front()) > 0 &&
           node.labels.count(config.gpu_type_label) == 0;
  });
  if (!untyped.empty()) {
    return checks->Warn(v1::CHECK_CODE_GPUS, kSubject,
                        fmt::format("{}; the label {}, which tells their type, is missing on {}",
                                    seen, config.gpu_type_label, Named(untyped)),
                        "install GPU feature discovery (the GPU operator has it), or set "
                        "kubernetes.gpu_type_label to a label that these nodes have");
  }
  checks->Ok(v1::CHECK_CODE_GPUS, kSubject, seen);
}

void JudgeQuotas(const std::string& name_space,
                 const absl::StatusOr<std::vector<QuotaLine>>& quotas, agents::CheckList* checks) {
  const std::string subject = "quotas of namespace " + name_space;
  if (!quotas.ok())
    return checks->Skip(v1::CHECK_CODE_LIMITS, subject,
                        std::string(ToStd(quotas.status().message())));
  if (quotas->empty()) return checks->Ok(v1::CHECK_CODE_LIMITS, subject, "none");
  for (const QuotaLine& line : *quotas) {
    if (line.IsExhausted() && !line.has_scope) {
      checks->Warn(v1::CHECK_CODE_LIMITS, subject, Describe(line),
                   "raise the quota, or end what uses it");
    } else {
      checks->Ok(v1::CHECK_CODE_LIMITS, subject, Describe(line));
    }
  }
}

void JudgeRanges(const std::string& name_space,
                 const absl::StatusOr<std::vector<RangeLine>>& ranges, agents::CheckList* checks) {
  const std::string subject = "limit ranges of namespace " + name_space;
  if (!ranges.ok())
    return checks->Skip(v1::CHECK_CODE_LIMITS, subject,
                        std::string(ToStd(ranges.status().message())));
  std::vector<std::string> lines;
  for (const RangeLine& line : *ranges) lines.push_back(Describe(line));
  checks->Ok(v1::CHECK_CODE_LIMITS, subject,
             lines.empty() ? "none" : fmt::format("{}", fmt::join(lines, "; ")));
}

}  // namespace muster::kubernetes
