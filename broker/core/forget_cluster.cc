// Forgets a cluster that will not come back, and all that is known of it.
#include <utility>

#include "broker/core/impl.h"
#include "contract/refusals.h"

namespace muster::core {

void Core::Impl::On(ForgetCluster& in, Step& step) {
  StatusReply reply{.ticket = in.ticket, .refusal = CheckForget(in)};
  if (reply.refusal) {
    step.out->effects.push_back(std::move(reply));
    return;
  }
  Cluster* const cluster = FindCluster(in.name);
  // They have ended, and nobody will deliver the rest of their logs.
  for (const auto& [id, run] : cluster->runs) {
    step.out->changes.push_back(PutRun{id.job, std::move(*run), /*is_last=*/true});
  }
  cluster->runs.clear();
  // Nothing fits a cluster without pools, so that the next pass over all groups takes it out of
  // their lanes. Until then it gets no job, because no agent speaks for it, and is not found by its
  // name, which another cluster may take.
  cluster->saved.inventory.Clear();
  refits_.ClusterChanged(cluster);
  clusters_by_name_.erase(clusters_by_name_.find(in.name));
  leaving_.push_back(cluster);
  to_show_.push_back(in.name);
  step.out->changes.push_back(RemoveCluster{in.name});
  step.out->effects.push_back(std::move(reply));
}

void Core::Impl::DropForgotten() {
  for (; !leaving_.empty() && refits_.AllHaveSeen(*leaving_.front()); leaving_.pop_front()) {
    const ClusterIndex index = leaving_.front()->index;
    std::erase(unblocking_.opened, leaving_.front());
    std::erase(unblocking_.clusters, leaving_.front());
    std::erase(keeping_, leaving_.front());
    clusters_[index].reset();
    free_indexes_.push_back(index);
  }
}

std::optional<contract::Refusal> Core::Impl::CheckForget(const ForgetCluster& in) const {
  using contract::Refusal;
  const Cluster* const cluster = FindCluster(in.name);
  if (cluster == nullptr)
    return Refusal{contract::refused::NoSuchCluster{in.name, KnownClusters()}};
  if (cluster->session) return Refusal{contract::refused::ClusterConnected{in.name}};
  if (cluster->active > 0)
    return Refusal{contract::refused::ClusterHasRuns{in.name, cluster->active}};
  return std::nullopt;
}

}  // namespace muster::core
