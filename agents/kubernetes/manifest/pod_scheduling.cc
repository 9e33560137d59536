// Chooses the nodes that a run's pods may have.
#include <algorithm>
#include <utility>

#include "agents/kubernetes/manifest/pod_template.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/gpu_types.h"

namespace muster::kubernetes {
namespace {

constexpr uint64_t kRequestMillis = 1000;
constexpr char kHostLabel[] = "kubernetes.io/hostname";
constexpr int kSpreadWeight = 100;  // the most that there is

Json Requirement(const v1::KubernetesNodeRequirement& wanted) {
  Json requirement = {{"key", wanted.key()}, {"operator", wanted.operator_()}};
  for (const std::string& value : wanted.values()) requirement["values"].push_back(value);
  return requirement;
}

Json NodeAffinity(const agent::v1::Assignment& assignment, const KubernetesConfig& config) {
  const v1::KubernetesOptions& options = assignment.spec().kubernetes();
  Json term = Json::object();
  for (const auto& wanted : options.required_nodes())
    term["matchExpressions"].push_back(Requirement(wanted));
  const GpuChoice gpus = ChooseGpus(assignment.spec().resources(), config);
  if (!gpus.type.empty()) {
    term["matchExpressions"].push_back(
        {{"key", config.gpu_type_label}, {"operator", "In"}, {"values", Json::array({gpus.type})}});
  }
  // A node's name, unlike its label of the host name, is sure to be what was reported of it. The
  // API takes one value in each.
  for (const std::string& node : assignment.excluded_nodes()) {
    term["matchFields"].push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  }
  Json affinity = Json::object();
  if (!term.empty()) {
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", Json::array({std::move(term)})}};
  }
  for (const auto& preferred : options.preferred_nodes()) {
    Json preference = {{"matchExpressions", Json::array({Requirement(preferred.requirement())})}};
    affinity["preferredDuringSchedulingIgnoredDuringExecution"].push_back(
        {{"weight", std::max<uint32_t>(preferred.weight(), 1)},
         {"preference", std::move(preference)}});
  }
  return affinity;
}

Json Spread(const agent::v1::Assignment& assignment) {
  const Json term = {{"topologyKey", kHostLabel},
                     {"labelSelector", {{"matchLabels", {{kRunLabel, assignment.run_key()}}}}}};
  switch (assignment.spec().kubernetes().spread()) {
    case v1::KUBERNETES_SPREAD_REQUIRED:
      return {{"requiredDuringSchedulingIgnoredDuringExecution", Json::array({term})}};
    case v1::KUBERNETES_SPREAD_PREFERRED:
      return {{"preferredDuringSchedulingIgnoredDuringExecution",
               Json::array({{{"weight", kSpreadWeight}, {"podAffinityTerm", term}}})}};
    default:
      return Json::object();
  }
}

}  // namespace

Json MakeAffinity(const agent::v1::Assignment& assignment, const KubernetesConfig& config) {
  Json affinity = Json::object();
  if (Json nodes = NodeAffinity(assignment, config); !nodes.empty())
    affinity["nodeAffinity"] = std::move(nodes);
  if (Json spread = Spread(assignment); !spread.empty())
    affinity["podAntiAffinity"] = std::move(spread);
  return affinity;
}

Json MakeTolerations(const agent::v1::Assignment& assignment, const KubernetesConfig& config) {
  Json tolerations = Json::array();
  for (const v1::KubernetesToleration& wanted : assignment.spec().kubernetes().tolerations()) {
    std::string by = wanted.operator_();
    if (by.empty()) by = wanted.value().empty() ? "Exists" : "Equal";
    Json toleration = {{"operator", by}};
    if (!wanted.key().empty()) toleration["key"] = wanted.key();
    if (!wanted.value().empty()) toleration["value"] = wanted.value();
    if (!wanted.effect().empty()) toleration["effect"] = wanted.effect();
    tolerations.push_back(std::move(toleration));
  }
  // The admission plug-in ExtendedResourceToleration does the same where a cluster has it: who
  // taints nodes so keeps others off them. Source:
  // https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
  if (const GpuChoice gpus = ChooseGpus(assignment.spec().resources(), config); gpus.count > 0)
    tolerations.push_back({{"key", gpus.resource}, {"operator", "Exists"}});
  return tolerations;
}

GpuChoice ChooseGpus(const v1::Resources& resources, const KubernetesConfig& config) {
  GpuChoice choice;
  if (resources.gpus_size() == 0) return choice;
  const v1::GpuRequest& wanted = resources.gpus(0);
  choice.count = (wanted.count_millis() + kRequestMillis - 1) / kRequestMillis;
  const auto found = std::find_if(
      config.gpu_resources.begin(), config.gpu_resources.end(),
      [&](const std::string& one) { return contract::NamesGpuResource(wanted.type(), one); });
  if (found != config.gpu_resources.end()) {
    choice.resource = *found;
  } else {
    choice.resource = config.gpu_resources.empty() ? "gpu" : config.gpu_resources.front();
    choice.type = wanted.type();
  }
  return choice;
}

}  // namespace muster::kubernetes
