#include "agents/kubernetes/cluster/fitting.h"

#include <algorithm>

#include "contract/node_match.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

contract::NodeAsk AskOf(const RunNeed& need) {
  return {need.options, need.gpu_resource, need.gpu_type, need.gpu_type_label};
}

}  // namespace

std::vector<std::string> Objections(const RunNeed& need, const NodeObject& node) {
  const auto label = [&](const std::string& key) -> const std::string* {
    const auto found = node.labels.find(key);
    return found == node.labels.end() ? nullptr : &found->second;
  };
  std::vector<std::string> objections;
  const auto& excluded = need.excluded_nodes;
  if (std::find(excluded.begin(), excluded.end(), node.name) != excluded.end()) {
    objections.push_back(
        fmt::format("is excluded, because an earlier run of the job failed there "
                    "(retry.exclude_failed_nodes)"));
  }
  for (std::string& objection : contract::NodeObjections(AskOf(need), label, node.taints))
    objections.push_back(std::move(objection));
  return objections;
}

std::string OutOfService(const RunNeed& need, const NodeObject& node) {
  if (node.unschedulable) return "cordoned";
  if (!node.ready) return "not ready";
  for (const Taint& taint : node.taints) {
    if (contract::IsPassing(taint) && contract::KeepsOff(AskOf(need), taint))
      return "tainted " + contract::Written(taint);
  }
  return "";
}

}  // namespace muster::kubernetes
