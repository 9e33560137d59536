// Knows which user is at the other end of a connection.
//
// gRPC does not hand on the credentials of a Unix socket's peer. So the broker accepts those
// connections itself (see UnixListener), asks the kernel, and notes the user under the name that
// gRPC gives to a connection that comes as a file descriptor: "fd:<number>". The number stays taken
// as long as any call of that connection lives, because the call holds the transport and the
// transport holds the descriptor; so a name never means two users at a time. Any thread.
#ifndef MUSTER_BROKER_RPC_USERS_H_
#define MUSTER_BROKER_RPC_USERS_H_

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "broker/app/principal.h"
#include "sync/mutex.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::broker {

// A client over TCP: it is on this machine, but its user is not known.
inline constexpr std::string_view kLoopbackUser = "anonymous@loopback";

class Users {
 public:
  // Notes the user of a descriptor that is about to be handed to gRPC.
  void Note(int fd, std::string user);
  // Returns who makes a call, whichever way it has come. Over TLS nobody is anybody without a
  // credential.
  Principal PrincipalOf(const grpc::ServerContextBase& call) const;
  // The same for a call that has not come over TLS; `peer` has the form of ServerContext::peer().
  Principal LocalPrincipal(std::string_view peer) const;

 private:
  mutable Mutex mutex_;
  // The table has as many entries as there were descriptors in use at a time.
  absl::flat_hash_map<int, std::string> by_fd_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_USERS_H_
