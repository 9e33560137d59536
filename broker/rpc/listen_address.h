// Decides where the broker may listen over TCP. Pure.
#ifndef MUSTER_BROKER_RPC_LISTEN_ADDRESS_H_
#define MUSTER_BROKER_RPC_LISTEN_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::broker {

// Returns "HOST:PORT" in the form that gRPC takes, if HOST is only this machine: 127.0.0.0/8, [::1]
// or localhost (which means 127.0.0.1). Port 0: the system chooses. INVALID_ARGUMENT says what is
// wrong and what is possible.
absl::StatusOr<std::string> CheckListenAddress(std::string_view address);

// Checks the same for HTTP.
absl::StatusOr<std::string> CheckHttpListenAddress(std::string_view address);

// Checks the same for the network listener, which takes any IP address. A name is refused, because
// it may mean another address tomorrow.
absl::StatusOr<std::string> CheckTlsListenAddress(std::string_view address);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_LISTEN_ADDRESS_H_
