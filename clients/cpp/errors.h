// Makes the errors of a client's calls.
#ifndef MUSTER_CLIENTS_CPP_ERRORS_H_
#define MUSTER_CLIENTS_CPP_ERRORS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "grpcpp/support/status.h"
#include "rpc/address.h"

namespace muster::client {

// Returns the end of a call that this client has not canceled. A broker that stops cuts calls off
// with a bare CANCELLED, which becomes UNAVAILABLE, like a lost connection; any other end is as
// rpc::FromGrpc has it.
absl::Status EndOfCall(const grpc::Status& end);

// Returns whether the transport failed, and not the broker, whose answers carry details.
bool IsTransportError(const absl::Status& status);

// Returns whether the same call may well succeed later: nobody answered, or the broker said when to
// ask again (RetryInfo).
bool MayPass(const absl::Status& status);

// Returns the time that the broker asked to wait; zero if it did not.
absl::Duration RetryDelay(const absl::Status& status);

// Puts a transport's failure into words that help: the address, the cause and the remedy. An answer
// of the broker stays as it is. `timeout` is what the call was given. PERMISSION_DENIED: the socket
// is there, and this user may not connect to it. UNAUTHENTICATED and others: see CheckTrust.
absl::Status Explain(const absl::Status& status, const rpc::Address& address,
                     absl::Duration timeout);

// The same error of a call of which an earlier attempt may have reached the broker.
absl::Status AsMaybeSent(absl::Status error);

// Returns the part of `patience` for which it is worth trying a call again that failed with this
// status. `was_answered`: a broker has answered this client before, so that one that is gone
// probably restarts. Zero: not at all.
absl::Duration Patience(const absl::Status& status, const rpc::Address& address, bool was_answered,
                        const ClientOptions& options, absl::Duration patience);

// Returns in one line why a call failed that will be tried again.
absl::Status Interruption(const absl::Status& status, const rpc::Address& address,
                          bool was_answered);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_ERRORS_H_
