#include "broker/rpc/http_front.h"

#include <grpcpp/channel.h>
#include <grpcpp/server.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "broker/app/principal.h"
#include "broker/app/rights.h"
#include "broker/auth/refusals.h"
#include "broker/rpc/call_audit.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/http_entrance.h"
#include "broker/rpc/machine_name.h"
#include "broker/rpc/users.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

constexpr std::string_view kMetricsPath = "/metrics";

// The gauges tell how much others do: callers who may see all jobs may see them.
absl::Status MayReadMetrics(const Principal& caller) {
  if (!caller.refusal.ok()) return caller.refusal;
  const bool sees_all =
      Allows(caller.role, /*in_project=*/false, UseCase::kReadJobs, Relation::kOfNoProject);
  if (sees_all) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kPermissionDenied, "NOT_ALLOWED",
      "/metrics is for callers who may see all jobs: with the role viewer, "
      "operator or admin; use another token, or let the operator set http.open_metrics");
}

http::Hooks HooksOf(const HttpFront& front) {
  http::Hooks hooks;
  hooks.admit = [front](std::string_view path, const http::Credentials& credentials,
                        const std::string& peer) -> absl::StatusOr<http::Caller> {
    Principal caller;
    const absl::Status admitted = AdmitPerson(*front.users, peer, path, credentials, &caller);
    if (!admitted.ok()) {
      front.audit->RefuseAtGate(path, caller, admitted, peer);
      return admitted;
    }
    return http::Caller{.user = std::move(caller.user)};
  };
  hooks.metrics = [front](const http::Credentials& credentials,
                          const std::string& peer) -> absl::StatusOr<std::string> {
    if (front.options.open_metrics) return front.metrics();
    Principal caller{.refusal = auth::Missing()};
    if (!credentials.empty()) caller = front.users->PrincipalOf(peer, credentials);
    const absl::Status allowed = MayReadMetrics(caller);
    if (allowed.ok()) return front.metrics();
    front.audit->RefuseAtGate(kMetricsPath, caller, allowed, peer);
    return allowed;
  };
  hooks.is_ready = front.is_ready;
  hooks.entrance = [entrance = front.entrance](const std::string& peer) {
    return entrance->HeaderFor(peer);
  };
  return hooks;
}

}  // namespace

absl::StatusOr<std::unique_ptr<http::Server>> BeginHttp(HttpFront front) {
  grpc::ChannelArguments arguments;
  // The server bounds what it sends by itself.
  arguments.SetMaxReceiveMessageSize(-1);
  http::TlsFiles tls;
  if (front.identity != nullptr) tls = {front.identity->certificate, front.identity->key};
  http::HttpOptions options = front.options;
  // The machine's own name may mean a loopback address on it.
  options.allowed_hosts.push_back(absl::AsciiStrToLower(MachineName()));
  return http::Server::Begin({.options = std::move(options),
                              .tls = std::move(tls),
                              .services = std::move(front.services),
                              .channel = front.server->InProcessChannel(arguments),
                              .hooks = HooksOf(front)});
}

}  // namespace muster::broker
