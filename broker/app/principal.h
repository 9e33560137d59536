// The caller of a use case; the first parameter of each.
#ifndef MUSTER_BROKER_APP_PRINCIPAL_H_
#define MUSTER_BROKER_APP_PRINCIPAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "broker/auth/role.h"
#include "broker/auth/token.h"

namespace muster::broker {

// The way in which the user is known.
enum class KnownBy : uint8_t {
  kNobody,       // nobody tells: a client over TCP
  kSocket,       // the kernel says whose process is at the other end of the Unix socket
  kToken,        // a token that the broker has made
  kCertificate,  // the certificate of a cluster, over TLS
};

using auth::Role;

struct Principal {
  std::string user = {};
  KnownBy known_by = KnownBy::kNobody;
  Role role = Role::kNone;
  std::shared_ptr<const auth::Token> token{};  // of kToken, else null
  // The answer to whatever the principal asks, if its credential was not accepted; the role is
  // kNone then.
  absl::Status refusal{};
  // The credential that was not accepted, for the audit log: "expired token 3". Never a secret.
  std::string refused_credential = {};
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PRINCIPAL_H_
