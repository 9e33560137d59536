// Describes the caller of a use case, which is the first parameter of each.
#ifndef MUSTER_BROKER_APP_PRINCIPAL_H_
#define MUSTER_BROKER_APP_PRINCIPAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/auth/project_table.h"
#include "broker/auth/role.h"
#include "broker/auth/token.h"

namespace muster::broker {

// The way in which the user is known.
enum class KnownBy : uint8_t {
  kNobody,       // nobody tells: a client over TCP
  kSocket,       // the kernel says whose process is at the other end of the Unix socket
  kToken,        // a token that the broker has made
  kOidc,         // a token of the identity provider (OIDC)
  kCertificate,  // the certificate of a cluster, over TLS
};

using auth::Role;

struct Principal {
  std::string user = {};
  KnownBy known_by = KnownBy::kNobody;
  Role role = Role::kNone;
  // May speak for clusters too, without a certificate.
  bool is_agent = false;
  // The credential that may end before its streams. It is set for kToken, and for kOidc, where it
  // has no number and no file knows it; else it is null.
  std::shared_ptr<const auth::Token> token{};
  // The answer to whatever the principal asks, if its credential was not accepted, or if it calls
  // too often.
  absl::Status refusal{};
  // The groups of the user, as the provider of identities tells them. A token and the socket tell
  // none: Unix groups come from directories that may be slow, and others name them.
  std::vector<std::string> groups{};
  // The roles of the user and the groups in projects, as they were when the call began.
  std::vector<auth::Membership> memberships{};
  // The credential that was not accepted, as the audit log names it: "expired token 3". Never a
  // secret. Empty: there was none, or it is good.
  std::string refused_credential = {};
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PRINCIPAL_H_
