#include "agents/kubernetes/cluster/admission_facts.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "contract/admission.h"
#include "contract/node_match.h"

namespace muster::kubernetes {
namespace {

// Nodes of one kind differ by what their kernels keep; amounts are rounded up, so that nothing that
// fits is refused.
constexpr int64_t kProfileMemoryStep = int64_t{128} << 20;

// Returns keys of labels of which nearly each node has another value, such as its name.
std::set<std::string> UntoldLabels(const std::vector<NodeRoom>& nodes) {
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> untold;
  for (const NodeRoom& room : nodes) {
    for (const auto& [key, value] : room.node->labels) {
      if (untold.contains(key)) continue;
      std::set<std::string>& of_key = values[key];
      of_key.insert(value);
      if (of_key.size() > contract::kMaxLabelValues) untold.insert(key);
    }
  }
  return untold;
}

bool IsTold(const Taint& taint) {
  return taint.effect != "PreferNoSchedule" && !contract::IsPassing(taint);
}

v1::NodeProfile ProfileOf(const NodeObject& node, const std::set<std::string>& untold) {
  v1::NodeProfile profile;
  profile.set_count(1);
  for (const auto& [key, value] : node.labels) {
    if (!untold.contains(key)) (*profile.mutable_labels())[key] = value;
  }
  for (const Taint& taint : node.taints) {
    if (!IsTold(taint)) continue;
    v1::NodeTaint* told = profile.add_taints();
    told->set_key(taint.key);
    told->set_value(taint.value);
    told->set_effect(taint.effect);
  }
  const Amounts all = CapacityOf(node);
  profile.set_cpu_millis(static_cast<uint64_t>(all.cpu_millis));
  const int64_t steps = (all.memory_bytes + kProfileMemoryStep - 1) / kProfileMemoryStep;
  profile.set_memory_bytes(static_cast<uint64_t>(steps * kProfileMemoryStep));
  profile.set_pods(static_cast<uint64_t>(all.pods));
  for (const auto& [resource, count] : all.gpus)
    (*profile.mutable_gpus())[resource] = static_cast<uint64_t>(count);
  return profile;
}

// Makes a key that is the same for all nodes of one profile.
std::string ProfileKey(const NodeObject& node, const std::set<std::string>& untold) {
  const v1::NodeProfile profile = ProfileOf(node, untold);
  std::string key;
  const auto add = [&](const std::string& text) {
    key += std::to_string(text.size()) + ":" + text;
  };
  for (const auto& [name, value] :
       std::map<std::string, std::string>(profile.labels().begin(), profile.labels().end())) {
    add(name);
    add(value);
  }
  std::set<std::string> taints;
  for (const v1::NodeTaint& taint : profile.taints())
    taints.insert(taint.key() + "=" + taint.value() + ":" + taint.effect());
  add("taints");
  for (const std::string& taint : taints) add(taint);
  for (const uint64_t amount : {profile.cpu_millis(), profile.memory_bytes(), profile.pods()})
    add(std::to_string(amount));
  for (const auto& [resource, count] :
       std::map<std::string, uint64_t>(profile.gpus().begin(), profile.gpus().end())) {
    add(resource);
    add(std::to_string(count));
  }
  return key;
}

bool IsTooLarge(const v1::AdmissionFacts& facts) {
  return facts.ByteSizeLong() > contract::kMaxAdmissionBytes;
}

}  // namespace

v1::NodeFacts NodeFactsOf(const std::vector<NodeRoom>& nodes) {
  v1::NodeFacts facts;
  const std::set<std::string> untold = UntoldLabels(nodes);
  std::map<std::string, int> index;
  for (const NodeRoom& room : nodes) {
    const auto [at, is_new] = index.emplace(ProfileKey(*room.node, untold), facts.profiles_size());
    if (!is_new) {
      v1::NodeProfile* known = facts.mutable_profiles(at->second);
      known->set_count(known->count() + 1);
      continue;
    }
    if (facts.profiles_size() == contract::kMaxNodeProfiles) return {};
    *facts.add_profiles() = ProfileOf(*room.node, untold);
    facts.mutable_profiles(facts.profiles_size() - 1)->set_example(room.node->name);
  }
  for (const std::string& key : untold) facts.add_untold_labels(key);
  return facts;
}

bool AreToldApart(const NodeObject& a, const NodeObject& b) {
  return ProfileKey(a, {}) != ProfileKey(b, {});
}

void KeepWithinBounds(v1::AdmissionFacts* facts) {
  v1::KubernetesFacts& own = *facts->mutable_kubernetes();
  if (IsTooLarge(*facts)) own.clear_nodes();
  for (v1::NamespaceFacts& space : *own.mutable_namespaces()) {
    if (!IsTooLarge(*facts)) return;
    space.clear_claims();
    space.clear_stuck_claims();
    space.clear_service_accounts();
    space.clear_queues();
    space.clear_limits();
  }
  if (!IsTooLarge(*facts)) return;
  own.clear_priority_classes();
  own.clear_runtime_classes();
}

}  // namespace muster::kubernetes
