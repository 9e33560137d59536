// The caller of a use case; the first parameter of each.
#ifndef MUSTER_BROKER_APP_PRINCIPAL_H_
#define MUSTER_BROKER_APP_PRINCIPAL_H_

#include <cstdint>
#include <string>

namespace muster::broker {

// The way in which the user is known.
enum class KnownBy : uint8_t {
  kNobody,       // nobody tells: a client over TCP
  kSocket,       // the kernel says whose process is at the other end of the Unix socket
  kCertificate,  // the certificate of a cluster, over TLS
};

// The roles of a principal.
enum class Role : uint8_t {
  kOwner,      // everything; every client that reaches the broker is an owner
  kSubmitter,  // own jobs; no client is one as long as the broker cannot tell people apart
  kAgent,      // the agent of a cluster, over TLS: the files that its jobs bring along
  kNone,       // over TLS without a credential: nothing
};

struct Principal {
  std::string user;
  KnownBy known_by = KnownBy::kNobody;
  Role role = Role::kOwner;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PRINCIPAL_H_
