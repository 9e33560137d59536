#include "contract/node_match.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "contract/gpu_types.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// Gt and Lt compare whole numbers; anything else does not match.
bool Compares(const std::string& label, const std::string& bound, bool is_greater) {
  int64_t mine = 0;
  int64_t theirs = 0;
  if (!absl::SimpleAtoi(label, &mine) || !absl::SimpleAtoi(bound, &theirs)) return false;
  return is_greater ? mine > theirs : mine < theirs;
}

// `label` is the value that the node's label of that key has; null if it has none.
bool Fulfils(const v1::KubernetesNodeRequirement& requirement, const std::string* label) {
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

bool Tolerates(const v1::KubernetesToleration& toleration, const NodeTaint& taint) {
  if (!toleration.effect().empty() && toleration.effect() != taint.effect) return false;
  if (!toleration.key().empty() && toleration.key() != taint.key) return false;
  const bool takes_any_value = toleration.operator_() == "Exists" ||
                               (toleration.operator_().empty() && toleration.value().empty());
  return takes_any_value || toleration.value() == taint.value;
}

std::string Written(const v1::KubernetesNodeRequirement& requirement) {
  return fmt::format("{} {}{}{}", requirement.key(), requirement.operator_(),
                     requirement.values().empty() ? "" : " ",
                     fmt::join(requirement.values(), ", "));
}

std::string GpuObjection(const NodeAsk& ask, LabelFinder label) {
  if (ask.gpu_type.empty()) return "";
  const std::string* type = label(ask.gpu_type_label);
  if (type == nullptr)
    return fmt::format("does not tell the type of its GPUs (label {})", ask.gpu_type_label);
  if (IsSameGpuType(*type, ask.gpu_type)) return "";
  return fmt::format("has GPUs of type {}, not {}", *type, ask.gpu_type);
}

}  // namespace

bool IsPassing(const NodeTaint& taint) {
  constexpr std::array<std::string_view, 3> kPrefixes = {
      "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return taint.key.starts_with(prefix); });
}

bool KeepsOff(const NodeAsk& ask, const NodeTaint& taint) {
  if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return false;
  if (!ask.gpu_resource.empty() && taint.key == ask.gpu_resource) return false;
  const auto& tolerations = ask.options.tolerations();
  return std::none_of(tolerations.begin(), tolerations.end(),
                      [&](const auto& toleration) { return Tolerates(toleration, taint); });
}

std::string Written(const NodeTaint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

std::vector<std::string> NodeObjections(const NodeAsk& ask, LabelFinder label,
                                        const std::vector<NodeTaint>& taints) {
  std::vector<std::string> objections;
  if (std::string gpus = GpuObjection(ask, label); !gpus.empty())
    objections.push_back(std::move(gpus));
  for (const auto& [key, value] : ask.options.node_selector()) {
    const std::string* found = label(key);
    if (found == nullptr) {
      objections.push_back(
          fmt::format("has no label {}={} (kubernetes.node_selector)", key, value));
    } else if (*found != value) {
      objections.push_back(
          fmt::format("has label {}={}, not {} (kubernetes.node_selector)", key, *found, value));
    }
  }
  for (const v1::KubernetesNodeRequirement& requirement : ask.options.required_nodes()) {
    if (!Fulfils(requirement, label(requirement.key()))) {
      objections.push_back(
          fmt::format("does not fulfil \"{}\" (kubernetes.required_nodes)", Written(requirement)));
    }
  }
  for (const NodeTaint& taint : taints) {
    if (!IsPassing(taint) && KeepsOff(ask, taint)) {
      objections.push_back(
          fmt::format("has the taint {}, which the job does not tolerate (kubernetes.tolerations)",
                      Written(taint)));
    }
  }
  return objections;
}

}  // namespace muster::contract
