// Operators let a cluster take no new runs, or take that wish back.
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/timestamps.h"
#include "contract/refusals.h"

namespace muster::core {

void Core::Impl::On(SetCordon& in, Step& step) {
  StatusReply reply{.ticket = in.ticket};
  Cluster* const cluster = FindCluster(in.name);
  if (cluster == nullptr) {
    reply.refusal = contract::Refusal{contract::refused::NoSuchCluster{
        .cluster = in.name, .known = KnownClusters(), .wish = in.cordon ? "cordon" : "uncordon"}};
    step.out->effects.push_back(std::move(reply));
    return;
  }
  const std::optional<v1::ClusterCordon> before =
      std::exchange(cluster->saved.cordon, std::move(in.cordon));
  if (std::optional<v1::ClusterCordon>& cordon = cluster->saved.cordon) {
    SetTimestamp(before ? ToTime(before->create_time()) : step.now, cordon->mutable_create_time());
  }
  if (before || cluster->saved.cordon) {
    ShowSaved(cluster);
    Open(cluster);
    PutNow(*cluster, step);
  }
  Drain(cluster, step);
  step.out->effects.push_back(std::move(reply));
}

}  // namespace muster::core
