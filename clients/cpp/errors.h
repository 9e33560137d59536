// What a client says when a call did not work out.
#ifndef MUSTER_CLIENTS_CPP_ERRORS_H_
#define MUSTER_CLIENTS_CPP_ERRORS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/address.h"

namespace muster::client {

// Whether the transport failed, as against an answer of the broker, which carries details.
bool IsTransportError(const absl::Status& status);

// Whether the same call may well succeed later: nobody answered, or the broker said when to ask
// again (RetryInfo).
bool MayPass(const absl::Status& status);

// How long the broker asked to wait; zero if it did not.
absl::Duration RetryDelay(const absl::Status& status);

// A transport's failure in words that help: the address, the cause and the remedy. An answer of the
// broker stays as it is. `timeout` is what the call was given.
absl::Status Explain(const absl::Status& status, const Address& address, absl::Duration timeout);

// Why a stream broke off that will be resumed, in one line.
absl::Status Interruption(const absl::Status& status, const Address& address);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_ERRORS_H_
