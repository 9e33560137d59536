// Makes the credentials of the network listener. gRPC's interface for certificates that change is
// experimental, so this file alone uses it.
#ifndef MUSTER_BROKER_RPC_TLS_LISTENER_H_
#define MUSTER_BROKER_RPC_TLS_LISTENER_H_

#include <memory>

#include "broker/auth/cluster_access.h"

namespace grpc {
class ServerCredentials;
}

namespace muster::broker {

class CallAudit;
class Users;

// Offers TLS 1.2 and 1.3 with the certificate that the files hold at the time of each handshake,
// and the gate before every call. `access`, `users` and `audit` outlive the server.
//
// The handshake asks for the caller's certificate, and the gate verifies it: a caller whose
// certificate is refused gets an error that says why, where a failed handshake says nothing.
std::shared_ptr<grpc::ServerCredentials> TlsListenerCredentials(const ClusterAccess* access,
                                                                const Users* users,
                                                                CallAudit* audit);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_TLS_LISTENER_H_
