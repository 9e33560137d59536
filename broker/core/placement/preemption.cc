#include "broker/core/placement/preemption.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace muster::core::placement {
namespace {

// The part of what is lacking that `given` covers, from 0 to 3.
double HelpOf(const Amounts& given, const Amounts& lacking) {
  const auto part = [](uint64_t gives, uint64_t lacks) {
    if (lacks == 0) return 0.0;
    return static_cast<double>(std::min(gives, lacks)) / static_cast<double>(lacks);
  };
  return part(given.cpu_millis, lacking.cpu_millis) +
         part(given.memory_bytes, lacking.memory_bytes) +
         part(given.gpu_millis, lacking.gpu_millis);
}

class Chooser {
 public:
  Chooser(const Amounts& each, const std::vector<NodeRoom>& nodes,
          const std::vector<PreemptibleRun>& runs)
      : each_(each), runs_(runs), is_chosen_(runs.size()) {
    absl::flat_hash_map<std::string, size_t> by_name;
    for (const NodeRoom& node : nodes) {
      by_name.emplace(node.name, nodes_.size());
      nodes_.push_back({.free = node.free});
    }
    places_.resize(runs.size());
    for (size_t i = 0; i < runs.size(); ++i) {
      for (const std::string& name : runs[i].nodes) {
        const auto [at, is_new] = by_name.emplace(name, nodes_.size());
        if (is_new) nodes_.emplace_back();
        nodes_[at->second].runs.push_back(i);
        places_[i].push_back(at->second);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) LookAt(i);
  }

  // Takes the node that costs the fewest runs, and of those the one with the newest. False: none
  // can be had.
  bool TakeNode() {
    Node* best = nullptr;
    const auto rank = [](const Node& node) { return std::tuple(node.ends.size(), -node.age); };
    for (Node& node : nodes_) {
      if (node.is_taken || !node.can_be_had) continue;
      if (best == nullptr || rank(node) < rank(*best)) best = &node;
    }
    if (best == nullptr || chosen_ + best->ends.size() > kMostEndedForOne) return false;
    best->is_taken = true;
    for (const size_t run : std::exchange(best->ends, {})) End(run);
    return true;
  }

  // Lets those go on without whose end as many nodes have enough, the oldest first.
  std::vector<size_t> TakeChosen(uint64_t count) {
    good_ =
        static_cast<uint64_t>(std::count_if(nodes_.begin(), nodes_.end(), [this](const Node& node) {
          return IsWithin(each_, node.free);
        }));
    std::vector<size_t> chosen;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (is_chosen_[i]) chosen.push_back(i);
    }
    std::stable_sort(chosen.begin(), chosen.end(),
                     [this](size_t a, size_t b) { return runs_[a].began < runs_[b].began; });
    std::erase_if(chosen, [&](size_t run) { return IsSpared(run, count); });
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

 private:
  struct Node {
    Amounts free;
    std::vector<size_t> runs = {};
    std::vector<size_t> ends = {};  // the runs that would have to end
    double age = 0;                 // sum of the beginnings of these, in s
    bool can_be_had = false;
    bool is_taken = false;
  };

  void LookAt(size_t index) {
    Node& node = nodes_[index];
    node.ends.clear();
    node.age = 0;
    Amounts free = node.free;
    std::vector<size_t> left;
    for (const size_t run : node.runs) {
      if (!is_chosen_[run]) left.push_back(run);
    }
    while (!IsWithin(each_, free) && !left.empty()) {
      const Amounts lacking = each_ - free;
      const auto rank = [&](size_t run) {
        return std::pair(HelpOf(runs_[run].each, lacking), runs_[run].began);
      };
      const auto best = std::max_element(left.begin(), left.end(),
                                         [&](size_t a, size_t b) { return rank(a) < rank(b); });
      if (HelpOf(runs_[*best].each, lacking) == 0) break;
      free = free + runs_[*best].each;
      node.ends.push_back(*best);
      node.age += absl::ToDoubleSeconds(runs_[*best].began - absl::UnixEpoch());
      left.erase(best);
    }
    node.can_be_had = IsWithin(each_, free);
  }

  void End(size_t run) {
    is_chosen_[run] = true;
    ++chosen_;
    for (const size_t node : places_[run]) nodes_[node].free = nodes_[node].free + runs_[run].each;
    for (const size_t node : places_[run]) {
      if (!nodes_[node].is_taken) LookAt(node);
    }
  }

  bool IsSpared(size_t run, uint64_t count) {
    uint64_t lost = 0;
    for (const size_t index : places_[run]) {
      const Amounts& free = nodes_[index].free;
      if (IsWithin(each_, free) && !IsWithin(each_ + runs_[run].each, free)) ++lost;
    }
    if (good_ < count + lost) return false;
    good_ -= lost;
    for (const size_t node : places_[run]) nodes_[node].free = nodes_[node].free - runs_[run].each;
    return true;
  }

  const Amounts each_;
  const std::vector<PreemptibleRun>& runs_;
  std::vector<Node> nodes_;
  std::vector<std::vector<size_t>> places_;  // the nodes of each run
  std::vector<bool> is_chosen_;
  size_t chosen_ = 0;
  uint64_t good_ = 0;  // nodes that have enough
};

}  // namespace

std::optional<std::vector<size_t>> ChooseRunsToEnd(const Amounts& each, uint32_t count,
                                                   uint64_t free_nodes,
                                                   const std::vector<NodeRoom>& nodes,
                                                   const std::vector<PreemptibleRun>& runs) {
  Chooser chooser(each, nodes, runs);
  const uint64_t needed = count - std::min<uint64_t>(free_nodes, count);
  for (uint64_t taken = 0; taken < needed; ++taken) {
    if (!chooser.TakeNode()) return std::nullopt;
  }
  return chooser.TakeChosen(needed);
}

}  // namespace muster::core::placement
