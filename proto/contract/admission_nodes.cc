// Tells whether the published nodes of a Kubernetes cluster could ever hold a job's pods.
#include <algorithm>
#include <utility>
#include <vector>

#include "contract/admission.h"
#include "contract/counted.h"
#include "contract/pod_ask.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// Counts the pods that have room on one empty node of the profile.
uint64_t PodsOn(const PodAsk& ask, const v1::NodeProfile& profile) {
  uint64_t pods = profile.pods();
  if (ask.cpu_millis > 0) pods = std::min(pods, profile.cpu_millis() / ask.cpu_millis);
  if (ask.memory_bytes > 0) pods = std::min(pods, profile.memory_bytes() / ask.memory_bytes);
  if (ask.gpus > 0) pods = std::min(pods, GpusOf(profile, ask.gpu_resource) / ask.gpus);
  const bool is_apart = ask.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED;
  return is_apart ? std::min<uint64_t>(pods, 1) : pods;
}

// Returns "node-1 has the most memory: 2Gi, 4Gi are needed", for profiles none of which holds a
// pod.
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
                       want.text(there), want.text(want.needed), WordFor(want.needed, "is", "are"));
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
  const PodAsk ask = PodAskOf(needs, facts);
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
        fmt::format("none of the {} matches; {} comes nearest: it {}", Counted(nodes, "node"),
                    nearest->example(), fmt::join(fewest, ", and it ")));
  }
  if (pods == 0) return Short("nodes", needs.pods, 0, NearestRoom(ask, matching));
  return Short("nodes", needs.pods, pods,
               fmt::format("the {} that {} would have room for {} of the run if they were empty, "
                           "{} are needed{}",
                           Counted(matches, "node"), WordFor(matches, "matches", "match"),
                           Counted(pods, "pod"), needs.pods,
                           ask.options.spread() == v1::KUBERNETES_SPREAD_REQUIRED
                               ? ", each on a node of its own"
                               : ""));
}

}  // namespace muster::contract
