// Forgets a cluster that will not come back, and all that is known of it.
#include <fmt/format.h>

#include <utility>

#include "broker/core/impl.h"
#include "contract/errors.h"

namespace muster::core {

void Core::Impl::On(ForgetCluster& in, Step& step) {
  StatusReply reply{.ticket = in.ticket, .status = CheckForget(in)};
  if (!reply.status.ok()) {
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
    clusters_[index].reset();
    free_indexes_.push_back(index);
  }
}

absl::Status Core::Impl::CheckForget(const ForgetCluster& in) const {
  const Cluster* const cluster = FindCluster(in.name);
  if (cluster == nullptr) {
    return contract::Error(
        absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER",
        fmt::format("there is no cluster \"{}\" to forget; {}", in.name, KnownClusters()),
        {{"cluster", in.name}});
  }
  if (cluster->session) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "CLUSTER_CONNECTED",
                           fmt::format("the agent of cluster \"{}\" is connected; stop it first, "
                                       "for it would bring the cluster back",
                                       in.name),
                           {{"cluster", in.name}});
  }
  if (cluster->active > 0) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "CLUSTER_HAS_RUNS",
        fmt::format("cluster \"{}\" has {} run{} that {} not ended; start its agent again, and let "
                    "the jobs end or cancel them",
                    in.name, cluster->active, cluster->active == 1 ? "" : "s",
                    cluster->active == 1 ? "has" : "have"),
        {{"cluster", in.name}, {"active_runs", fmt::format("{}", cluster->active)}});
  }
  return absl::OkStatus();
}

}  // namespace muster::core
