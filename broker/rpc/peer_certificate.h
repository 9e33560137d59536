// The things that a connection tells of its peer before anything is judged. Any thread.
#ifndef MUSTER_BROKER_RPC_PEER_CERTIFICATE_H_
#define MUSTER_BROKER_RPC_PEER_CERTIFICATE_H_

#include <grpcpp/security/auth_context.h>

#include <string>

namespace muster::broker {

// Returns whether the caller has come through the network listener.
bool IsOverTls(const grpc::AuthContext& context);

// Returns the caller's certificate as PEM; empty if it has none, or has not come over TLS.
std::string CertificateOf(const grpc::AuthContext& context);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PEER_CERTIFICATE_H_
