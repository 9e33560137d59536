// Finds the clusters that fit groups, when a group is made, and after inventories, or the limits of
// projects, have changed.
#include <algorithm>
#include <tuple>
#include <utility>

#include "broker/core/impl.h"

namespace muster::core {
namespace {

// Costs of moving a group to another lane, in checks of one group against one cluster.
constexpr int64_t kChecksForAMove = 10;

// Is the order of a ClusterSet. A cluster that is being forgotten may have the name of another one.
bool IsBefore(const Cluster* a, const Cluster* b) {
  return std::forward_as_tuple(a->name(), a->index) < std::forward_as_tuple(b->name(), b->index);
}

}  // namespace

ClusterSet Core::Impl::FittingClusters(const Requirements& requirements) const {
  ClusterSet fits;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (CheckFit(requirements, cluster->saved, *limits_).now()) fits.push_back(cluster);
  }
  return fits;
}

void Core::Impl::On(SetPlaceLimits& in, Step& step) {
  if (in.limits != nullptr && *in.limits != *limits_) {
    limits_ = std::move(in.limits);
    // This acts as if all inventories had changed: no job is assigned before it is checked again.
    for (const auto& [name, cluster] : clusters_by_name_) refits_.ClusterChanged(cluster);
  }
  step.out->effects.push_back(StatusReply{.ticket = in.ticket});
}

Group* Core::Impl::GroupFor(Requirements requirements, const std::string& user) {
  // The account names the user from here on.
  const UserIndex index = accounts_.Open(requirements.project, user)->user;
  if (Group* known = groups_.Find(requirements, index)) return known;
  ClusterSet fits = FittingClusters(requirements);
  Group* group = groups_.Add(std::move(requirements), index);
  group->fitted_at = refits_.version();
  waiting_.Join(group, std::move(fits));
  return group;
}

void Core::Impl::LeaveGroup(uint32_t id) {
  Group* group = groups_.at(id);
  if (--group->jobs > 0) return;
  waiting_.Leave(group);
  groups_.Remove(group);
}

void Core::Impl::Refit(Group* group, int64_t* budget) {
  ClusterSet fits = group->lane()->fits;
  bool moves = false;
  refits_.ForEachStale(*group, [&](Cluster* cluster) {
    --*budget;
    const auto at = std::lower_bound(fits.begin(), fits.end(), cluster, IsBefore);
    const bool was = at != fits.end() && *at == cluster;
    if (CheckFit(group->requirements, cluster->saved, *limits_).now() == was) return;
    moves = true;
    if (was) {
      fits.erase(at);
    } else {
      fits.insert(at, cluster);
    }
  });
  group->fitted_at = refits_.version();
  if (!moves) return;
  waiting_.Join(group, std::move(fits));
  *budget -= kChecksForAMove;
}

void Core::Impl::RefitSome(int64_t* budget) {
  while (!refits_.is_done() && *budget > 0) {
    const std::optional<uint32_t> id = refits_.Next(groups_.end_id());
    if (!id) continue;
    --*budget;
    if (Group* group = groups_.at(*id)) Refit(group, budget);
  }
}

}  // namespace muster::core
