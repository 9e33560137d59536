// Who asks. The first parameter of every use case.
#ifndef MUSTER_BROKER_APP_PRINCIPAL_H_
#define MUSTER_BROKER_APP_PRINCIPAL_H_

#include <cstdint>
#include <string>

namespace muster::broker {

// How the user is known.
enum class KnownBy : uint8_t {
  kNobody,  // nobody says who it is: whoever comes over TCP
  kSocket,  // the kernel says whose process is at the other end of the Unix socket
};

// What a principal may do.
enum class Role : uint8_t {
  kOwner,      // everything; whoever reaches the broker is one
  kSubmitter,  // own jobs; nobody is one as long as the broker cannot tell people apart
};

struct Principal {
  std::string user;
  KnownBy known_by = KnownBy::kNobody;
  Role role = Role::kOwner;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PRINCIPAL_H_
