// Asks a cluster's agent whether everything works there, and what it has.
#ifndef MUSTER_BROKER_APP_CHECK_CLUSTER_H_
#define MUSTER_BROKER_APP_CHECK_CLUSTER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/clusters_service.pb.h"

namespace muster::broker {

using CheckClusterDone = std::function<void(absl::StatusOr<v1::CheckClusterResponse>)>;
using DescribeClusterDone = std::function<void(absl::StatusOr<v1::DescribeClusterResponse>)>;

// Nobody waits for the answer after `client_deadline`. `done` is called once, on any thread; the
// errors are AskCluster's. Neither blocks.
void CheckCluster(const Principal& principal, const Services& services,
                  const v1::CheckClusterRequest& request, absl::Time client_deadline,
                  CheckClusterDone done);
void DescribeCluster(const Principal& principal, const Services& services,
                     const v1::DescribeClusterRequest& request, absl::Time client_deadline,
                     DescribeClusterDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CHECK_CLUSTER_H_
