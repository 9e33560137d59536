// Asks a provider's token endpoint (RFC 6749) for the tokens of a login. Waits for the network.
#ifndef MUSTER_CLIENTS_CPP_LOGIN_TOKEN_ENDPOINT_H_
#define MUSTER_CLIENTS_CPP_LOGIN_TOKEN_ENDPOINT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/login/login_file.h"
#include "oidc/discovery.h"

namespace muster::client {

using Form = std::vector<std::pair<std::string, std::string>>;

struct TokenAnswer {
  std::string error;        // of RFC 6749 and RFC 8628: "authorization_pending"; empty: none
  std::string description;  // in the provider's words, of any characters; may be empty
  std::string id_token;
  std::string refresh_token;  // empty: that of before stays good
};

// UNAVAILABLE: nobody answers, or the provider has trouble of its own. FAILED_PRECONDITION: what it
// answers cannot be read, or it gives no ID token.
absl::StatusOr<TokenAnswer> AskForTokens(const oidc::Exchanger& exchange, const Login& login,
                                         Form form);

// Puts other tokens into the place of those of the login. UNAUTHENTICATED: the login has ended.
// Others as of AskForTokens.
absl::Status Refresh(const oidc::Exchanger& exchange, Login* login);

// Tells the provider that the login has ended. False: it was not told, or has no way to hear it.
bool Revoke(const oidc::Exchanger& exchange, const Login& login);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOGIN_TOKEN_ENDPOINT_H_
