#include "broker/rpc/gate.h"

#include <fmt/format.h>

#include <vector>

#include "broker/app/principal.h"
#include "broker/rpc/call_audit.h"
#include "broker/rpc/http_entrance.h"
#include "broker/rpc/peer_certificate.h"
#include "broker/rpc/users.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "pki/certificates.h"
#include "rpc/status.h"

namespace muster::broker {
namespace {

// gRPC gives the keys of metadata in lower case.
constexpr char kAuthorization[] = "authorization";
// gRPC does not tell a gate where a call comes from.
constexpr std::string_view kPeer = "tls";

enum class Caller { kAnyone, kCluster, kPerson };

struct Door {
  std::string_view path;  // of a method, or with '/' at its end of a service
  Caller caller;
};

// Check says that the broker serves, which a connection shows anyway. Enroll takes a token of its
// own. GetLoginInfo is for those who have no credential yet. Agents read the files that jobs bring
// along by their digests.
constexpr Door kDoors[] = {
    {"/grpc.health.v1.Health/Check", Caller::kAnyone},
    {"/muster.agent.v1.EnrollmentService/Enroll", Caller::kAnyone},
    {"/muster.agent.v1.EnrollmentService/Renew", Caller::kCluster},
    {"/muster.agent.v1.AgentLinkService/", Caller::kCluster},
    {"/muster.agent.v1.LogLinkService/", Caller::kCluster},
    {"/muster.agent.v1.FileLinkService/", Caller::kCluster},
    {"/muster.agent.v1.SecretLinkService/", Caller::kCluster},
    {"/muster.v1.FilesService/DownloadFile", Caller::kCluster},
    {"/muster.v1.JobsService/", Caller::kPerson},
    {"/muster.v1.ClustersService/", Caller::kPerson},
    {"/muster.v1.FilesService/", Caller::kPerson},
    {"/muster.v1.IdentityService/GetLoginInfo", Caller::kAnyone},
    {"/muster.v1.IdentityService/", Caller::kPerson},
    {"/muster.v1.AuditService/", Caller::kPerson},
    {"/muster.v1.UsageService/", Caller::kPerson},
    {"/muster.v1.ProjectsService/", Caller::kPerson},
    {"/muster.v1.SecretsService/", Caller::kPerson},
    {"/grpc.health.v1.Health/Watch", Caller::kPerson},
    {"/grpc.reflection.v1.ServerReflection/", Caller::kPerson},
    {"/grpc.reflection.v1alpha.ServerReflection/", Caller::kPerson},
};

bool IsOpen(std::string_view path, Caller caller) {
  for (const Door& door : kDoors) {
    const bool fits = door.path.ends_with('/') ? path.starts_with(door.path) : path == door.path;
    if (fits && (door.caller == Caller::kAnyone || door.caller == caller)) return true;
  }
  return false;
}

absl::Status NoCredential() {
  return contract::Error(
      absl::StatusCode::kUnauthenticated, "NO_CREDENTIAL",
      "the broker does not know who calls: people need a token, which its operator makes (muster "
      "token create), and an agent needs the certificate that muster-agent enroll gets");
}

absl::Status NotForAgents() {
  return contract::Error(absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
                         "the certificate of a cluster is for its agent alone, and opens nothing "
                         "else; people use a token, and no certificate");
}

absl::Status NotAnAgent(const Principal& caller) {
  const std::string remedy =
      caller.known_by == KnownBy::kSocket
          ? fmt::format(
                "run the agent as the broker's user or as root, add {} to the broker's "
                "setting agent_users, or",
                caller.user)
          : "use the broker's Unix socket, or";
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "NOT_AN_AGENT",
      fmt::format("{} may not speak as the agent of a cluster here: {} enroll the agent (muster "
                  "clusters invite) and let it connect to tls:HOST:PORT",
                  caller.user, remedy));
}

absl::Status NotForPeople() {
  return contract::Error(absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
                         "a token opens what is for people, and nothing else; an agent uses the "
                         "certificate that muster-agent enroll gets, and no token");
}

// The caller as the audit log names it, whether or not the certificate is good.
Principal OfCertificate(const std::string& certificate) {
  const auto shown = pki::ReadCertificate(certificate);
  if (!shown.ok()) return {.refused_credential = "malformed certificate"};
  return {.user = shown->cluster, .refused_credential = "certificate " + shown->serial};
}

}  // namespace

absl::Status TwoCredentials() {
  return contract::Error(absl::StatusCode::kUnauthenticated, "TWO_CREDENTIALS",
                         "the call has the certificate of a cluster and a token, and the broker "
                         "takes one of them; people use a token alone, agents a certificate alone");
}

absl::Status AdmitPerson(const Users& users, std::string_view peer, std::string_view path,
                         const std::vector<std::string_view>& credentials, Principal* caller) {
  if (IsOpen(path, Caller::kAnyone)) return absl::OkStatus();
  if (credentials.empty()) return NoCredential();
  *caller = users.PrincipalOf(peer, credentials);
  if (!caller->refusal.ok()) return caller->refusal;
  return IsOpen(path, Caller::kPerson) ? absl::OkStatus() : NotForPeople();
}

grpc::Status Gate::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                           OutputMetadata*, OutputMetadata*) {
  const auto path = metadata.find(":path");
  const std::string_view named = path == metadata.end()
                                     ? std::string_view()
                                     : std::string_view(path->second.data(), path->second.size());
  std::vector<std::string_view> credentials;
  const auto [begin, end] = metadata.equal_range(kAuthorization);
  for (auto header = begin; header != end; ++header) {
    credentials.emplace_back(header->second.data(), header->second.size());
  }
  const std::string certificate = CertificateOf(*context);
  Principal caller;
  const absl::Status admitted = Admit(named, certificate, credentials, &caller);
  if (!admitted.ok() && audit_ != nullptr) {
    if (!certificate.empty()) caller = OfCertificate(certificate);
    audit_->RefuseAtGate(named, caller, admitted, kPeer);
  }
  return rpc::ToGrpc(admitted);
}

absl::Status Gate::Admit(std::string_view path, const std::string& certificate,
                         const std::vector<std::string_view>& credentials,
                         Principal* caller) const {
  if (IsOpen(path, Caller::kAnyone)) return absl::OkStatus();
  if (certificate.empty() && credentials.empty()) return NoCredential();
  if (!certificate.empty() && !credentials.empty()) return TwoCredentials();
  if (certificate.empty()) return AdmitPerson(users_, kPeer, path, credentials, caller);
  if (const auto peer = access_.Check(certificate); !peer.ok()) return peer.status();
  return IsOpen(path, Caller::kCluster) ? absl::OkStatus() : NotForAgents();
}

AgentIdentity::AgentIdentity(const ClusterAccess* access, const Users& users,
                             const grpc::ServerContextBase& call)
    : access_(access) {
  if (users.entrance() != nullptr && users.entrance()->PeerOf(call)) {
    refusal_ = NoCredential();
    return;
  }
  const auto context = call.auth_context();
  if (context == nullptr || !IsOverTls(*context)) {
    const Principal caller = users.PrincipalOf(call.peer(), {});
    if (caller.is_agent) return;
    refusal_ = NotAnAgent(caller);
    if (users.audit() != nullptr) users.audit()->Note(call, caller);
    return;
  }
  const std::string certificate = CertificateOf(*context);
  if (certificate.empty() || access_ == nullptr) {
    refusal_ = NoCredential();
    return;
  }
  absl::StatusOr<ClusterPeer> peer = access_->Check(certificate);
  refusal_ = peer.status();
  if (peer.ok()) peer_ = *std::move(peer);
}

absl::Status AgentIdentity::Check() const {
  if (!refusal_.ok() || !peer_) return refusal_;
  return access_->CheckAgain(*peer_);
}

absl::Status AgentIdentity::CheckSpeaksFor(std::string_view cluster) const {
  if (absl::Status status = Check(); !status.ok() || !peer_ || peer_->cluster == cluster)
    return status;
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "NOT_THIS_CLUSTER",
      fmt::format("the agent's certificate is of the cluster \"{}\"; set its cluster to that, or "
                  "enroll it with a token for the other one",
                  peer_->cluster));
}

}  // namespace muster::broker
