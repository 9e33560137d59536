#include "broker/rpc/gate.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>

#include <vector>

#include "broker/rpc/call_audit.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "pki/certificates.h"
#include "rpc/status.h"

namespace muster::broker {
namespace {

enum class Caller { kAnyone, kCluster };

struct Door {
  std::string_view path;  // of a method, or with '/' at its end of a service
  Caller caller;
};

// Health says that the broker serves, which a connection shows anyway. Enroll takes a token of its
// own. Agents read the files that jobs bring along by their digests.
constexpr Door kDoors[] = {
    {"/grpc.health.v1.Health/", Caller::kAnyone},
    {"/muster.agent.v1.EnrollmentService/Enroll", Caller::kAnyone},
    {"/muster.agent.v1.EnrollmentService/Renew", Caller::kCluster},
    {"/muster.agent.v1.AgentLinkService/", Caller::kCluster},
    {"/muster.agent.v1.LogLinkService/", Caller::kCluster},
    {"/muster.agent.v1.FileLinkService/", Caller::kCluster},
    {"/muster.v1.FilesService/DownloadFile", Caller::kCluster},
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
      "the broker does not know who calls: an agent needs the certificate that muster-agent enroll "
      "gets, and people use the broker's Unix socket, through ssh -L from elsewhere");
}

}  // namespace

bool IsOverTls(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> types =
      context.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return types.size() == 1 && types[0] == GRPC_TLS_TRANSPORT_SECURITY_TYPE;
}

std::string CertificateOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pems =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return pems.size() == 1 ? std::string(pems[0].data(), pems[0].size()) : "";
}

grpc::Status Gate::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                           OutputMetadata*, OutputMetadata*) {
  const auto path = metadata.find(":path");
  const std::string_view named = path == metadata.end()
                                     ? std::string_view()
                                     : std::string_view(path->second.data(), path->second.size());
  const std::string certificate = CertificateOf(*context);
  const absl::Status admitted = Admit(named, certificate);
  if (!admitted.ok() && audit_ != nullptr) {
    const auto shown = pki::ReadCertificate(certificate);
    audit_->RefuseAtGate(named, shown.ok() ? shown->cluster : "", shown.ok() ? shown->serial : "",
                         admitted);
  }
  return rpc::ToGrpc(admitted);
}

absl::Status Gate::Admit(std::string_view path, const std::string& certificate) const {
  if (IsOpen(path, Caller::kAnyone)) return absl::OkStatus();
  if (certificate.empty()) return NoCredential();
  const absl::StatusOr<ClusterPeer> peer = access_.Check(certificate);
  if (!peer.ok()) return peer.status();
  if (IsOpen(path, Caller::kCluster)) return absl::OkStatus();
  return contract::Error(absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
                         "the certificate of a cluster is for its agent alone, and opens nothing "
                         "else; people use the broker's Unix socket");
}

AgentIdentity::AgentIdentity(const ClusterAccess* access, const grpc::ServerContextBase& call)
    : access_(access) {
  const auto context = call.auth_context();
  if (context == nullptr || !IsOverTls(*context)) return;
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
