#include "broker/core/placement/choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "broker/core/fit.h"

namespace muster::core::placement {

bool Choices::IsWorse(const Candidate& a, const Candidate& b) {
  return std::tie(a.rank, a.place) > std::tie(b.rank, b.place);
}

void Choices::RankAgain(const Group& group, const Turn& turn, Candidate* candidate) const {
  const Cluster& cluster = *candidate->cluster;
  candidate->estimate =
      MakeEstimate(group.requirements, turn, candidate->capacity, cluster.load, now_);
  candidate->rank = RankOf(candidate->estimate);
  candidate->seen = cluster.load_version;
}

std::vector<Choices::Candidate> Choices::RankAll(const Group& group, const Turn& turn,
                                                 const std::vector<Cluster*>& fits,
                                                 int64_t* budget) const {
  std::vector<Candidate> heap;
  for (size_t i = 0; i < fits.size(); ++i) {
    if (!fits[i]->TakesRuns()) continue;
    --*budget;
    Candidate& candidate = heap.emplace_back();
    candidate.place = i;
    candidate.cluster = fits[i];
    candidate.capacity = CapacityFor(group.requirements, fits[i]->saved);
    RankAgain(group, turn, &candidate);
    if (!candidate.estimate.may_go) heap.pop_back();
  }
  std::make_heap(heap.begin(), heap.end(), IsWorse);
  return heap;
}

std::optional<Choices::Choice> Choices::Best(const Group& group, const Turn& turn,
                                             const std::vector<Cluster*>& fits, int64_t* budget) {
  const auto [at, is_new] = ranked_.try_emplace(group.id);
  if (is_new || at->second.priority != turn.priority)
    at->second = {turn.priority, RankAll(group, turn, fits, budget)};
  std::vector<Candidate>& heap = at->second.heap;
  while (!heap.empty()) {
    const Candidate& first = heap.front();
    const bool takes_runs = first.cluster->TakesRuns();
    if (takes_runs && first.seen == first.cluster->load_version)
      return Choice{first.cluster, first.estimate};
    std::pop_heap(heap.begin(), heap.end(), IsWorse);
    if (!takes_runs) {
      heap.pop_back();
      continue;
    }
    RankAgain(group, turn, &heap.back());
    if (heap.back().estimate.may_go) {
      std::push_heap(heap.begin(), heap.end(), IsWorse);
    } else {
      heap.pop_back();
    }
  }
  return std::nullopt;
}

}  // namespace muster::core::placement
