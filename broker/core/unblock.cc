// Lets jobs be placed again that no cluster had room for, once something has ended somewhere.
//
// A cluster where that may be is *opened*. A pass goes over all blocked queues, a bounded slice in
// each round, and lets those be served whose first job an opened cluster has room for. So it costs
// as much as there are users and classes of needs, however many jobs wait.
#include <algorithm>
#include <utility>

#include "broker/core/fit.h"
#include "broker/core/impl.h"

namespace muster::core {

void Core::Impl::Open(Cluster* cluster) {
  if (std::exchange(cluster->has_opened, true)) return;
  unblocking_.opened.push_back(cluster);
}

bool Core::Impl::HasPlaceToWait(const ClusterSet& fits, absl::Time now) {
  return std::any_of(fits.begin(), fits.end(), [now](const Cluster* cluster) {
    return cluster->TakesRuns() &&
           cluster->load.HasPlaceToWait(cluster->saved.inventory.pools_size(), now);
  });
}

bool Core::Impl::MayWait(const Lane& lane, const ProjectQueue::List& blocked,
                         absl::Time now) const {
  if (blocked.empty() || keeping_.empty()) return true;
  const int32_t priority = blocked.first_turn().priority;
  return std::any_of(lane.fits.begin(), lane.fits.end(), [&](Cluster* cluster) {
    if (!HasPlaceToWait({cluster}, now)) return false;
    const auto& kept = cluster->load.kept;
    const auto comes_first = [priority](const auto& one) { return one.priority >= priority; };
    const auto count = std::count_if(kept.begin(), kept.end(), comes_first);
    const bool shares_nodes = cluster->saved.kind == v1::CLUSTER_KIND_KUBERNETES;
    return count < (shares_nodes ? 1 : std::max(1, cluster->saved.inventory.pools_size()));
  });
}

bool Core::Impl::UnblockSome(absl::Time now, int64_t* budget) {
  Unblocking& pass = unblocking_;
  const WaitingTree::Blocked& blocked = waiting_.blocked();
  while (*budget > 0) {
    if (!pass.last) {
      // A pass begins, with all clusters that have been opened since the last one began.
      for (Cluster* cluster : pass.opened) cluster->has_opened = false;
      pass.clusters = std::exchange(pass.opened, {});
      std::erase_if(pass.clusters, [](const Cluster* cluster) { return !cluster->TakesRuns(); });
    }
    if (pass.clusters.empty()) return pass.opened.empty();
    auto at = pass.last ? blocked.upper_bound(*pass.last) : blocked.begin();
    while (at != blocked.end() && *budget > 0) {
      const placement::RoomNeed need = at->first;
      for (UserQueue* queue : std::vector<UserQueue*>(at->second)) {
        if (MayGo(*queue, now, budget)) waiting_.Unblock(queue);
      }
      pass.last = need;
      at = blocked.upper_bound(need);
    }
    if (at != blocked.end()) return false;
    pass.last.reset();
    pass.clusters.clear();
  }
  return pass.opened.empty();
}

bool Core::Impl::MayGo(const UserQueue& queue, absl::Time now, int64_t* budget) const {
  const Requirements& job = queue.first_group()->requirements;
  const Turn turn = queue.first_turn();
  const ClusterSet& fits = queue.project->lane->fits;
  return std::any_of(unblocking_.clusters.begin(), unblocking_.clusters.end(),
                     [&](Cluster* cluster) {
                       --*budget;
                       if (std::find(fits.begin(), fits.end(), cluster) == fits.end()) return false;
                       const placement::Capacity capacity = CapacityFor(job, cluster->saved);
                       const placement::Estimate estimate =
                           placement::MakeEstimate(job, turn, capacity, cluster->load, now);
                       return estimate.has_room || estimate.is_kept;
                     });
}

}  // namespace muster::core
