// Clusters as the core sees them.
#ifndef MUSTER_BROKER_APP_SHOW_CLUSTERS_H_
#define MUSTER_BROKER_APP_SHOW_CLUSTERS_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/clusters_service.pb.h"

namespace muster::broker {

// Return the clusters in the order of their names, from the snapshot that the last commit has left.
// Neither blocks.
absl::StatusOr<v1::ListClustersResponse> ListClusters(const Principal& principal,
                                                      const Services& services,
                                                      const v1::ListClustersRequest& request);
// NOT_FOUND, NO_SUCH_CLUSTER.
absl::StatusOr<v1::GetClusterResponse> GetCluster(const Principal& principal,
                                                  const Services& services,
                                                  const v1::GetClusterRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SHOW_CLUSTERS_H_
