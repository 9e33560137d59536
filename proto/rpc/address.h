// The address at which a broker listens, as people write it.
#ifndef MUSTER_PROTO_RPC_ADDRESS_H_
#define MUSTER_PROTO_RPC_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::rpc {

struct Address {
  std::string text;  // as written, for messages
  std::string
      target;  // what gRPC takes; never a name that a proxy or a service config could redirect
  std::string unix_path;    // of a Unix socket; empty for TCP
  std::string origin = {};  // who named it, for messages; empty: no matter
  bool is_tls = false;      // over a network, where the broker shows a certificate
  // The CAs, as PEM; one of them has signed that certificate. The caller adds them.
  std::string ca = {};
};

// Reads "unix:PATH", "HOST:PORT" or "tls:HOST:PORT", where HOST is a name, an IPv4 address or an
// IPv6 address in brackets and PORT is 1 to 65535. INVALID_ARGUMENT that quotes the text and shows
// the forms.
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_ADDRESS_H_
