// The document in which an OpenID provider describes itself (OpenID Connect Discovery 1.0). Pure
// but for Discover.
#ifndef MUSTER_PROTO_OIDC_DISCOVERY_H_
#define MUSTER_PROTO_OIDC_DISCOVERY_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "oidc/https.h"

namespace muster::oidc {

struct Discovery {
  std::string jwks_uri;  // where its keys are
  std::string token_endpoint;
  std::string device_authorization_endpoint;  // empty: it has no device flow
  std::string revocation_endpoint;            // empty: it has none
};

// Stands for Exchange in tests.
using Exchanger = std::function<absl::StatusOr<HttpsAnswer>(const HttpsRequest&)>;

// INVALID_ARGUMENT: the issuer is no URL that CheckUrl takes, or has a query or a fragment.
absl::Status CheckIssuer(std::string_view issuer);

// FAILED_PRECONDITION: the answer is of another issuer, is unreadable, or names an address that
// CheckUrl does not take.
absl::StatusOr<Discovery> ReadDiscovery(std::string_view json, std::string_view issuer);

// Asks the provider. Waits for the network. `wanted` has the CA; its URL does not count.
absl::StatusOr<Discovery> Discover(const Exchanger& exchange, std::string_view issuer,
                                   HttpsRequest wanted);

}  // namespace muster::oidc

#endif  // MUSTER_PROTO_OIDC_DISCOVERY_H_
