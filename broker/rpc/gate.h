// Decides, for every call of the network listener, whether the caller may make it at all. It
// refuses all that its table does not open: a service that is added later is closed until somebody
// opens it. A caller has one credential: the certificate of a cluster, or the token of a person.
// The token is looked at here already, so that a stranger's messages are not even read.
//
// The Unix socket and loopback have no gate: the kernel says who is there. gRPC's threads call it;
// it waits for nothing. gRPC hands on the code and the words of its refusals, and no details.
#ifndef MUSTER_BROKER_RPC_GATE_H_
#define MUSTER_BROKER_RPC_GATE_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/auth/cluster_access.h"

namespace muster::broker {

class CallAudit;
class Users;

// Says if the caller from `peer` may make a call as a person, with a token alone. `credentials` are
// the values of "authorization". Sets `caller` to what is known of the caller.
absl::Status AdmitPerson(const Users& users, std::string_view peer, std::string_view path,
                         const std::vector<std::string_view>& credentials, Principal* caller);

// UNAUTHENTICATED, TWO_CREDENTIALS: a call has both a certificate and a token.
absl::Status TwoCredentials();

class Gate final : public grpc::AuthMetadataProcessor {
 public:
  // All outlive it. `audit` hears of each call that is refused; null if nobody does.
  Gate(const ClusterAccess* access, const Users* users, CallAudit* audit)
      : access_(*access), users_(*users), audit_(audit) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

  // `path` is "/SERVICE/METHOD"; `certificate` as PEM, empty if none; `credentials` are the values
  // of "authorization". Sets `caller` to what is known of the caller; of an anonymous one it is
  // nothing.
  absl::Status Admit(std::string_view path, const std::string& certificate,
                     const std::vector<std::string_view>& credentials, Principal* caller) const;

 private:
  const ClusterAccess& access_;
  const Users& users_;
  CallAudit* const audit_;
};

// Knows the cluster that the caller of an agent's service speaks for, as long as its stream lives.
class AgentIdentity {
 public:
  // `access` is null without a network listener.
  AgentIdentity(const ClusterAccess* access, const Users& users,
                const grpc::ServerContextBase& call);

  // UNAUTHENTICATED: the certificate is missing, or no longer good. PERMISSION_DENIED,
  // NOT_AN_AGENT: the caller has come by the Unix socket or loopback, and is no agent there.
  absl::Status Check() const;
  // PERMISSION_DENIED, NOT_THIS_CLUSTER: the certificate is of another one.
  absl::Status CheckSpeaksFor(std::string_view cluster) const;
  // None: the caller has come by the Unix socket or loopback and may speak for any cluster.
  const std::optional<ClusterPeer>& peer() const { return peer_; }
  // Returns the serial number of the certificate; empty if there is none.
  std::string serial() const { return peer_ ? peer_->serial : ""; }

 private:
  const ClusterAccess* const access_;
  absl::Status refusal_;
  std::optional<ClusterPeer> peer_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_GATE_H_
