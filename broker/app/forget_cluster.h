// Removes a cluster that will not come back.
#ifndef MUSTER_BROKER_APP_FORGET_CLUSTER_H_
#define MUSTER_BROKER_APP_FORGET_CLUSTER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/clusters_service.pb.h"

namespace muster::broker {

using ForgetDone = std::function<void(absl::StatusOr<v1::ForgetClusterResponse>)>;

// `done` is called once, on any thread: with OK once the removal is on disk. Does not block.
void ForgetCluster(const Principal& principal, const Services& services,
                   v1::ForgetClusterRequest request, ForgetDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FORGET_CLUSTER_H_
