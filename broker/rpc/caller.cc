#include "broker/rpc/caller.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "broker/app/user_meter.h"
#include "broker/auth/refusals.h"
#include "broker/rpc/call_audit.h"
#include "broker/rpc/call_bounds.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/http_entrance.h"
#include "broker/rpc/peer_certificate.h"
#include "broker/rpc/users.h"
#include "contract/errors.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

// gRPC gives the keys of metadata in lower case.
constexpr char kHeader[] = "authorization";

// The gate has verified the certificate.
Principal OfCertificate(const grpc::AuthContext& context) {
  const absl::StatusOr<pki::Certificate> certificate = pki::ReadCertificate(CertificateOf(context));
  if (!certificate.ok())
    return {.user = "nobody",
            .refusal = certificate.status(),
            .refused_credential = "malformed certificate"};
  return {.user = certificate->cluster, .known_by = KnownBy::kCertificate, .role = Role::kAgent};
}

Principal FindCaller(const Users& users, const grpc::CallbackServerContext& call) {
  std::vector<std::string_view> credentials;
  const auto [begin, end] = call.client_metadata().equal_range(kHeader);
  for (auto header = begin; header != end; ++header) {
    credentials.emplace_back(header->second.data(), header->second.size());
  }
  const std::optional<std::string> http_peer =
      users.entrance() ? users.entrance()->PeerOf(call) : std::nullopt;
  if (http_peer) {
    // The connection is the broker's own and says nothing of who calls.
    if (credentials.empty()) return {.refusal = auth::Missing()};
    return users.PrincipalOf(*http_peer, credentials);
  }
  const std::shared_ptr<const grpc::AuthContext> context = call.auth_context();
  if (context == nullptr || !IsOverTls(*context)) {
    return users.PrincipalOf(call.peer(), credentials);
  }
  // The gate has looked at the same; a call that it forgot has no rights here either.
  const bool has_certificate = !CertificateOf(*context).empty();
  if (has_certificate && !credentials.empty())
    return {.refusal = TwoCredentials(), .refused_credential = "certificate and token"};
  if (has_certificate) return OfCertificate(*context);
  if (credentials.empty()) return {.refusal = auth::Missing()};
  return users.PrincipalOf(call.peer(), credentials);
}

}  // namespace

Principal CallerOf(const Context& context, const grpc::CallbackServerContext& call) {
  Principal caller = FindCaller(*context.users, call);
  if (context.users->audit() != nullptr) context.users->audit()->Note(call, caller);
  if (caller.refusal.ok() && HasBounds(caller))
    caller.refusal = context.call_bounds->Begin(&call, caller.user, absl::Now());
  return caller;
}

absl::Status CheckAgentCall(const grpc::CallbackServerContext& call) {
  if (call.client_metadata().find(kHeader) == call.client_metadata().end()) {
    return absl::OkStatus();
  }
  return contract::Error(absl::StatusCode::kPermissionDenied, "TOKEN_NOT_FOR_AGENTS",
                         "tokens are for people, and nobody speaks as an agent with one; connect "
                         "without \"authorization\"");
}

}  // namespace muster::broker
