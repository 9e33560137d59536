// Finds out why no connection to a broker over TCP comes about: gRPC only says that a handshake has
// failed. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_BROKER_TRUST_H_
#define MUSTER_CLIENTS_CPP_BROKER_TRUST_H_

#include "absl/status/status.h"
#include "rpc/address.h"

namespace muster::client {

// Connects once, and sends nothing but the handshake. OK: the broker shows a certificate of the
// address's CAs, nobody answers there, or it is a Unix socket. UNAUTHENTICATED,
// BROKER_NOT_TRUSTED: the certificate is of another CA, has expired, has another name, ...
// FAILED_PRECONDITION: the address is one of TLS, and something else answers there (NO_TLS_THERE),
// or the other way round (NEEDS_TLS).
absl::Status CheckTrust(const rpc::Address& address);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_BROKER_TRUST_H_
