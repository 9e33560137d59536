#include "tests/bench/tools/connect.h"

#include <utility>

#include "rpc/address.h"

namespace muster::bench {

absl::StatusOr<std::unique_ptr<client::Client>> MakeClient(const Load& load) {
  client::ClientOptions options;
  options.address = load.address;
  return client::Client::Create(std::move(options));
}

absl::StatusOr<std::unique_ptr<agents::Dialer>> MakeDialer(const Load& load,
                                                           const std::string& tls_directory) {
  absl::StatusOr<rpc::Address> address = rpc::ParseAddress(load.address);
  if (!address.ok()) return address.status();
  return std::make_unique<agents::Dialer>(agents::BrokerEnd{address->target, tls_directory});
}

}  // namespace muster::bench
