// Lets a cluster take no new runs, or takes that wish back.
#ifndef MUSTER_BROKER_APP_CORDON_CLUSTER_H_
#define MUSTER_BROKER_APP_CORDON_CLUSTER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/clusters_service.pb.h"

namespace muster::broker {

using CordonDone = std::function<void(absl::StatusOr<v1::CordonClusterResponse>)>;
using UncordonDone = std::function<void(absl::StatusOr<v1::UncordonClusterResponse>)>;

// `done` is called once, on any thread: with OK once it is on disk. Neither blocks.
void CordonCluster(const Principal& principal, const Services& services,
                   v1::CordonClusterRequest request, CordonDone done);
void UncordonCluster(const Principal& principal, const Services& services,
                     v1::UncordonClusterRequest request, UncordonDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CORDON_CLUSTER_H_
