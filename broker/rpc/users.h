// Knows who is at the other end of a connection, and who a credential speaks for.
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
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "sync/mutex.h"

namespace muster::auth {
class Projects;
class Token;
class Tokens;
}  // namespace muster::auth

namespace muster::oidc {
class Verifier;
}

namespace muster::broker {

class CallAudit;
class HttpEntrance;

// Names a client over TCP: it is on this machine, but its user is not known.
inline constexpr std::string_view kLoopbackUser = "anonymous@loopback";

// The roles of callers without a token.
struct EntranceRoles {
  Role socket = Role::kOperator;  // of the socket's users, except for its owner, who is an admin
  Role listen = Role::kOperator;  // of callers over TCP
  // Users of the socket who may speak as agents, beside its owner and root.
  std::vector<std::string> agents = {};
};

class Users {
 public:
  // `tokens`, `projects` and `verifier` outlive it. Null: there are no tokens or projects, or there
  // is no identity provider.
  Users(EntranceRoles roles, const auth::Tokens* tokens, const auth::Projects* projects = nullptr,
        const oidc::Verifier* verifier = nullptr)
      : roles_(roles), tokens_(tokens), projects_(projects), verifier_(verifier) {}

  // Callers are noted there. Set it before the first call; null: nowhere.
  void set_audit(CallAudit* audit) { audit_ = audit; }
  CallAudit* audit() const { return audit_; }
  // Calls over HTTP are known by it. Set it before the first call; null: there are none.
  void set_entrance(const HttpEntrance* entrance) { entrance_ = entrance; }
  const HttpEntrance* entrance() const { return entrance_; }

  // Notes the user of a descriptor that is about to be handed to gRPC.
  void Note(int fd, std::string user, bool is_owner);

  // `peer` has the form of ServerContext::peer(); `credentials` are the values of "authorization".
  // One of them decides alone: one that is not accepted never falls back to the connection's user.
  Principal PrincipalOf(std::string_view peer,
                        const std::vector<std::string_view>& credentials) const;

 private:
  struct Peer {
    std::string user;
    bool is_owner = false;
  };

  Principal OfConnection(std::string_view peer) const;
  Principal OfCredential(std::string_view peer,
                         const std::vector<std::string_view>& credentials) const;
  Principal OfToken(std::string_view peer, std::string_view text) const;
  Principal OfJwt(std::string_view peer, std::string_view text) const;
  // Logs why a credential was refused, as often as kMaxRefusalsLogged allows.
  void LogRefusal(std::string_view why, std::string_view peer, const auth::Token* token) const;

  const EntranceRoles roles_;
  const auth::Tokens* const tokens_;
  const auth::Projects* const projects_;
  const oidc::Verifier* const verifier_;
  CallAudit* audit_ = nullptr;
  const HttpEntrance* entrance_ = nullptr;
  mutable Mutex mutex_;
  // The table has as many entries as there were descriptors in use at a time.
  absl::flat_hash_map<int, Peer> by_fd_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Time minute_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  mutable int refusals_ ABSL_GUARDED_BY(mutex_) = 0;  // since minute_
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_USERS_H_
