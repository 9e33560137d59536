// Whether the published nodes of a Kubernetes cluster could ever hold a job's pods.
#include <algorithm>
#include <set>
#include <utility>

#include "contract/admission.h"
#include "contract/gpu_types.h"
#include "contract/node_match.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// The demand of each pod on a node.
struct PodAsk {
  v1::KubernetesOptions options;  // without what is asked of untold labels
  std::string gpu_resource;       // empty: no GPU
  std::string gpu_type;           // empty: any
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpus = 0;
};

// The type as the nodes spell it; empty: it may be several, which others tell of.
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

PodAsk AskOf(const AdmissionNeeds& needs, const v1::KubernetesFacts& facts) {
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
  ask.cpu_millis = needs.cpu_millis > 0 ? needs.cpu_millis : facts.default_cpu_millis();
  ask.memory_bytes = needs.memory_bytes > 0 ? needs.memory_bytes : facts.default_memory_bytes();
  ChooseGpus(needs, facts, !is_untold(facts.gpu_type_label()), &ask);
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

// Pods that have room on one empty node of the profile.
uint64_t PodsOn(const PodAsk& ask, const v1::NodeProfile& profile) {
  uint64_t pods = profile.pods();
  if (ask.cpu_millis > 0) pods = std::min(pods, profile.cpu_millis() / ask.cpu_millis);
  if (ask.memory_bytes > 0) pods = std::min(pods, profile.memory_bytes() / ask.memory_bytes);
  if (ask.gpus > 0) pods = std::min(pods, GpusOf(profile, ask.gpu_resource) / ask.gpus);
  const bool is_apart = ask.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED;
  return is_apart ? std::min<uint64_t>(pods, 1) : pods;
}

// "node-1 has the most memory: 2Gi, 4Gi are needed", of profiles none of which holds a pod.
std::string NearestRoom(const PodAsk& ask, const std::vector<const v1::NodeProfile*>& matching) {
  struct Want {
    std::string what;
    uint64_t needed;
    uint64_t (*amount)(const PodAsk&, const v1::NodeProfile&);
    std::string (*text)(uint64_t);
  };
  const auto number = [](uint64_t count) { return fmt::format("{}", count); };
  const Want wants[] = {
      {ask.gpu_resource, ask.gpus,
       [](const PodAsk& a, const v1::NodeProfile& p) { return GpusOf(p, a.gpu_resource); }, number},
      {"cpu", ask.cpu_millis,
       [](const PodAsk&, const v1::NodeProfile& p) { return p.cpu_millis(); }, FormatCpus},
      {"memory", ask.memory_bytes,
       [](const PodAsk&, const v1::NodeProfile& p) { return p.memory_bytes(); }, FormatBytes},
  };
  for (const Want& want : wants) {
    const v1::NodeProfile* most = *std::max_element(
        matching.begin(), matching.end(),
        [&](const auto* a, const auto* b) { return want.amount(ask, *a) < want.amount(ask, *b); });
    const uint64_t there = want.amount(ask, *most);
    if (there >= want.needed) continue;
    return fmt::format("{} has the most {}: {}, {} {} needed", most->example(), want.what,
                       want.text(there), want.text(want.needed), want.needed == 1 ? "is" : "are");
  }
  return "no node that matches has all at once that a pod needs";
}

v1::Shortage Short(const char* resource, uint64_t requested, uint64_t available,
                   std::string words) {
  v1::Shortage shortage;
  shortage.set_resource(resource);
  shortage.set_requested(requested);
  shortage.set_available(available);
  shortage.set_message(std::move(words));
  return shortage;
}

}  // namespace

std::optional<v1::Shortage> FindNodeShortage(const AdmissionNeeds& needs,
                                             const v1::KubernetesFacts& facts) {
  // An autoscaler may have taken all of them away.
  if (facts.nodes().profiles().empty()) return std::nullopt;
  const PodAsk ask = AskOf(needs, facts);
  std::vector<const v1::NodeProfile*> matching;
  const v1::NodeProfile* nearest = nullptr;
  std::vector<std::string> fewest;
  uint64_t nodes = 0, matches = 0, pods = 0;
  for (const v1::NodeProfile& profile : facts.nodes().profiles()) {
    nodes += profile.count();
    std::vector<std::string> objections = ObjectionsOf(ask, profile, facts.gpu_type_label());
    if (objections.empty()) {
      matching.push_back(&profile);
      matches += profile.count();
      pods += profile.count() * PodsOn(ask, profile);
    } else if (nearest == nullptr || objections.size() < fewest.size()) {
      nearest = &profile;
      fewest = std::move(objections);
    }
  }
  if (pods >= needs.pods) return std::nullopt;
  if (matching.empty()) {
    return Short(
        "nodes", needs.pods, 0,
        fmt::format("none of the {} node{} matches; {} comes nearest: it {}", nodes,
                    nodes == 1 ? "" : "s", nearest->example(), fmt::join(fewest, ", and it ")));
  }
  if (pods == 0) return Short("nodes", needs.pods, 0, NearestRoom(ask, matching));
  return Short("nodes", needs.pods, pods,
               fmt::format("the {} node{} that match{} would have room for {} pod{} of the run if "
                           "they were empty, {} are needed{}",
                           matches, matches == 1 ? "" : "s", matches == 1 ? "es" : "", pods,
                           pods == 1 ? "" : "s", needs.pods,
                           ask.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED
                               ? ", each on a node of its own"
                               : ""));
}

}  // namespace muster::contract
