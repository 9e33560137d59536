#include "agents/kubernetes/cluster/fitting.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "contract/gpu_types.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

const std::string* NodeLabel(const NodeObject& node, const std::string& key) {
  const auto found = node.labels.find(key);
  return found == node.labels.end() ? nullptr : &found->second;
}

// Gt and Lt compare whole numbers; anything else does not match.
bool Compares(const std::string& label, const std::string& bound, bool is_greater) {
  int64_t mine = 0;
  int64_t theirs = 0;
  if (!absl::SimpleAtoi(label, &mine) || !absl::SimpleAtoi(bound, &theirs)) return false;
  return is_greater ? mine > theirs : mine < theirs;
}

bool Fulfils(const v1::KubernetesNodeRequirement& requirement, const NodeObject& node) {
  const std::string* label = NodeLabel(node, requirement.key());
  const std::string& op = requirement.operator_();
  const auto& values = requirement.values();
  const bool is_listed =
      label != nullptr && std::find(values.begin(), values.end(), *label) != values.end();
  if (op == "In") return is_listed;
  if (op == "NotIn") return !is_listed;
  if (op == "Exists") return label != nullptr;
  if (op == "DoesNotExist") return label == nullptr;
  return label != nullptr && !values.empty() && Compares(*label, values[0], op == "Gt");
}

bool Tolerates(const v1::KubernetesToleration& toleration, const Taint& taint) {
  if (!toleration.effect().empty() && toleration.effect() != taint.effect) return false;
  if (!toleration.key().empty() && toleration.key() != taint.key) return false;
  const bool takes_any_value = toleration.operator_() == "Exists" ||
                               (toleration.operator_().empty() && toleration.value().empty());
  return takes_any_value || toleration.value() == taint.value;
}

// Returns whether Kubernetes and its autoscaler set and take away the taint by themselves.
bool IsPassingTaint(const Taint& taint) {
  constexpr std::array<std::string_view, 3> kPrefixes = {
      "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return taint.key.starts_with(prefix); });
}

bool KeepsOff(const RunNeed& need, const Taint& taint) {
  if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return false;
  // Pods that ask for the resource tolerate it: see MakeTolerations.
  if (!need.gpu_resource.empty() && taint.key == need.gpu_resource) return false;
  const auto& tolerations = need.options.tolerations();
  return std::none_of(tolerations.begin(), tolerations.end(),
                      [&](const auto& toleration) { return Tolerates(toleration, taint); });
}

std::string WrittenRequirement(const v1::KubernetesNodeRequirement& requirement) {
  return fmt::format("{} {}{}{}", requirement.key(), requirement.operator_(),
                     requirement.values().empty() ? "" : " ",
                     fmt::join(requirement.values(), ", "));
}

std::string GpuObjection(const RunNeed& need, const NodeObject& node) {
  if (need.gpu_type.empty()) return "";
  const std::string* type = NodeLabel(node, need.gpu_type_label);
  if (type == nullptr)
    return fmt::format("does not tell the type of its GPUs (label {})", need.gpu_type_label);
  if (contract::IsSameGpuType(*type, need.gpu_type)) return "";
  return fmt::format("has GPUs of type {}, not {}", *type, need.gpu_type);
}

}  // namespace

std::string Written(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

std::vector<std::string> Objections(const RunNeed& need, const NodeObject& node) {
  std::vector<std::string> objections;
  const auto& excluded = need.excluded_nodes;
  if (std::find(excluded.begin(), excluded.end(), node.name) != excluded.end()) {
    objections.push_back(
        "is excluded, because an earlier run of the job failed there (retry.exclude_failed_nodes)");
  }
  if (std::string gpus = GpuObjection(need, node); !gpus.empty())
    objections.push_back(std::move(gpus));
  for (const auto& [key, value] : need.options.node_selector()) {
    const std::string* label = NodeLabel(node, key);
    if (label == nullptr) {
      objections.push_back(
          fmt::format("has no label {}={} (kubernetes.node_selector)", key, value));
    } else if (*label != value) {
      objections.push_back(
          fmt::format("has label {}={}, not {} (kubernetes.node_selector)", key, *label, value));
    }
  }
  for (const v1::KubernetesNodeRequirement& requirement : need.options.required_nodes()) {
    if (!Fulfils(requirement, node)) {
      objections.push_back(fmt::format("does not fulfil \"{}\" (kubernetes.required_nodes)",
                                       WrittenRequirement(requirement)));
    }
  }
  for (const Taint& taint : node.taints) {
    if (!IsPassingTaint(taint) && KeepsOff(need, taint)) {
      objections.push_back(
          fmt::format("has the taint {}, which the job does not tolerate (kubernetes.tolerations)",
                      Written(taint)));
    }
  }
  return objections;
}

std::string OutOfService(const RunNeed& need, const NodeObject& node) {
  if (node.unschedulable) return "cordoned";
  if (!node.ready) return "not ready";
  for (const Taint& taint : node.taints) {
    if (IsPassingTaint(taint) && KeepsOff(need, taint)) return "tainted " + Written(taint);
  }
  return "";
}

}  // namespace muster::kubernetes
