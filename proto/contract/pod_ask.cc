#include "contract/pod_ask.h"

#include <algorithm>
#include <set>
#include <utility>

#include "contract/gpu_share.h"
#include "contract/gpu_types.h"
#include "contract/node_match.h"

namespace muster::contract {
namespace {

// The type as the nodes spell it; empty if it may be several, which others tell of.
std::string SpelledType(const std::string& wanted, const v1::KubernetesFacts& facts) {
  std::set<std::string> labels;
  for (const v1::NodeProfile& profile : facts.nodes().profiles()) {
    const auto label = profile.labels().find(facts.gpu_type_label());
    if (label != profile.labels().end() && !label->second.empty()) labels.insert(label->second);
  }
  const std::vector<std::string> types = FindGpuTypes(wanted, labels);
  if (types.size() > 1) return "";
  return types.empty() ? wanted : types.front();
}

void ChooseGpus(const AdmissionNeeds& needs, const v1::KubernetesFacts& facts, bool is_type_told,
                PodAsk* ask) {
  if (needs.gpus == 0 || facts.gpu_resources().empty()) return;
  ask->gpus = needs.gpus;
  ask->gpu_resource = facts.gpu_resources(0);
  if (needs.gpu_type.empty()) return;
  for (const std::string& resource : facts.gpu_resources()) {
    if (!NamesGpuResource(needs.gpu_type, resource)) continue;
    ask->gpu_resource = resource;
    return;
  }
  if (is_type_told) ask->gpu_type = SpelledType(needs.gpu_type, facts);
}

// Returns the share of the nodes that the pod's GPUs bring it, as far as its job leaves cores or
// memory open.
GpuShare ShareOf(const PodAsk& ask, const AdmissionNeeds& needs, const v1::KubernetesFacts& facts) {
  GpuShare share(ask.gpus);
  const bool is_open = needs.cpu_millis == 0 || needs.memory_bytes == 0;
  if (!facts.shares_gpu_nodes() || ask.gpus == 0 || !is_open) return share;
  for (const v1::NodeProfile& profile : facts.nodes().profiles()) {
    if (ObjectionsOf(ask, profile, facts.gpu_type_label()).empty()) {
      share.AddNode(profile.cpu_millis(), profile.memory_bytes(),
                    GpusOf(profile, ask.gpu_resource));
    }
  }
  const v1::NamespaceFacts* space = NamespaceOf(needs, facts);
  if (space == nullptr) return share;
  for (const v1::NamespaceLimit& limit : space->limits()) {
    const bool is_quota = limit.kind() == v1::NAMESPACE_LIMIT_KIND_QUOTA;
    share.AddLimit(limit.resource(), is_quota
                                         ? limit.amount_millis() / std::max<int64_t>(1, needs.pods)
                                         : limit.amount_millis());
  }
  return share;
}

}  // namespace

PodAsk PodAskOf(const AdmissionNeeds& needs, const v1::KubernetesFacts& facts) {
  const auto& untold = facts.nodes().untold_labels();
  const auto is_untold = [&](const std::string& key) {
    return std::find(untold.begin(), untold.end(), key) != untold.end();
  };
  PodAsk ask;
  ask.options = needs.kubernetes;
  for (const std::string& key : untold) ask.options.mutable_node_selector()->erase(key);
  auto& required = *ask.options.mutable_required_nodes();
  required.erase(std::remove_if(required.begin(), required.end(),
                                [&](const auto& one) { return is_untold(one.key()); }),
                 required.end());
  ChooseGpus(needs, facts, !is_untold(facts.gpu_type_label()), &ask);
  const GpuShare share = ShareOf(ask, needs, facts);
  ask.cpu_millis =
      needs.cpu_millis > 0 ? needs.cpu_millis : share.CpuMillis(facts.default_cpu_millis());
  ask.memory_bytes =
      needs.memory_bytes > 0 ? needs.memory_bytes : share.MemoryBytes(facts.default_memory_bytes());
  return ask;
}

std::vector<std::string> ObjectionsOf(const PodAsk& ask, const v1::NodeProfile& profile,
                                      const std::string& gpu_type_label) {
  std::vector<NodeTaint> taints;
  for (const v1::NodeTaint& taint : profile.taints())
    taints.push_back({taint.key(), taint.value(), taint.effect()});
  const auto label = [&](const std::string& key) -> const std::string* {
    const auto found = profile.labels().find(key);
    return found == profile.labels().end() ? nullptr : &found->second;
  };
  return NodeObjections({ask.options, ask.gpu_resource, ask.gpu_type, gpu_type_label}, label,
                        taints);
}

uint64_t GpusOf(const v1::NodeProfile& profile, const std::string& resource) {
  const auto found = profile.gpus().find(resource);
  return found == profile.gpus().end() ? 0 : found->second;
}

const v1::NamespaceFacts* NamespaceOf(const AdmissionNeeds& needs,
                                      const v1::KubernetesFacts& facts) {
  const std::string& wanted =
      needs.kubernetes.namespace_().empty() ? needs.pool : needs.kubernetes.namespace_();
  for (const v1::NamespaceFacts& one : facts.namespaces()) {
    if (wanted.empty() || one.name() == wanted) return &one;
  }
  return nullptr;
}

}  // namespace muster::contract
