// Invites and revokes clusters, and gives their agents certificates.
//
// All of them wait for the disk: call them on the file workers.
#ifndef MUSTER_BROKER_APP_CLUSTER_CERTIFICATES_H_
#define MUSTER_BROKER_APP_CLUSTER_CERTIFICATES_H_

#include <optional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/auth/cluster_access.h"
#include "muster/agent/v1/enrollment.pb.h"
#include "muster/v1/clusters_service.pb.h"

namespace muster::broker {

absl::StatusOr<v1::InviteClusterResponse> InviteCluster(const Principal& principal,
                                                        const Services& services,
                                                        const v1::InviteClusterRequest& request);
absl::StatusOr<v1::RevokeClusterResponse> RevokeCluster(const Principal& principal,
                                                        const Services& services,
                                                        const v1::RevokeClusterRequest& request);

// The token is the caller's right.
absl::StatusOr<agent::v1::EnrollResponse> Enroll(const Services& services,
                                                 const agent::v1::EnrollRequest& request);
// `peer` is the caller by its certificate; nothing if it has none.
absl::StatusOr<agent::v1::RenewResponse> Renew(const std::optional<ClusterPeer>& peer,
                                               const Services& services,
                                               const agent::v1::RenewRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CLUSTER_CERTIFICATES_H_
