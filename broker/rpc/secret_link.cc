// Implements SecretLinkService: tells secrets to the agent that launches a run. Nothing is told
// over a connection that somebody could read on its way.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string_view>
#include <utility>

#include "broker/app/run_secrets.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/peer_certificate.h"
#include "broker/rpc/unary.h"
#include "broker/secrets/wipe.h"
#include "contract/errors.h"
#include "muster/agent/v1/secret_link.grpc.pb.h"
#include "rpc/status.h"

namespace muster::broker {
namespace {

// The way in which gRPC names a connection that was accepted for it (unix_listener.h).
constexpr std::string_view kUnixPeer = "fd:";

absl::Status CheckPrivate(const grpc::CallbackServerContext& call) {
  const auto context = call.auth_context();
  const bool is_over_tls = context != nullptr && IsOverTls(*context);
  if (is_over_tls || std::string_view(call.peer()).starts_with(kUnixPeer)) return absl::OkStatus();
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "SECRETS_NEED_TLS",
      "secrets travel over the broker's Unix socket or TLS alone, and this agent is connected "
      "over TCP without TLS; give the agent's broker setting the socket, or enroll the agent");
}

// Overwrites the answer once it has been sent.
class Telling final : public grpc::ServerUnaryReactor {
 public:
  explicit Telling(agent::v1::FetchRunSecretsResponse* answer) : answer_(*answer) {}

  void Tell(absl::StatusOr<agent::v1::FetchRunSecretsResponse> found) {
    const absl::Status status = found.status();
    if (status.ok()) answer_ = *std::move(found);
    Finish(rpc::ToGrpc(status));
  }
  void OnDone() override {
    for (agent::v1::RunSecret& secret : *answer_.mutable_secrets())
      secrets::Wipe(secret.mutable_value());
    delete this;
  }

 private:
  agent::v1::FetchRunSecretsResponse& answer_;
};

class SecretLinkService : public agent::v1::SecretLinkService::CallbackService {
 public:
  explicit SecretLinkService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* FetchRunSecrets(grpc::CallbackServerContext* call,
                                            const agent::v1::FetchRunSecretsRequest* in,
                                            agent::v1::FetchRunSecretsResponse* out) override {
    auto* const telling = new Telling(out);
    const AgentIdentity identity(context_.app.cluster_access, *context_.users, *call);
    absl::Status status = CheckAgentCall(*call);
    if (status.ok()) status = CheckPrivate(*call);
    if (status.ok()) status = identity.CheckSpeaksFor(in->cluster());
    if (!status.ok()) {
      telling->Tell(status);
      return telling;
    }
    const bool is_taken = context_.file_workers->PostCall(
        [this, telling, in] { telling->Tell(broker::FetchRunSecrets(context_.app, *in)); });
    if (!is_taken) telling->Tell(context_.file_workers->Refusal());
    return telling;
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSecretLinkService(const Context& context) {
  return std::make_unique<SecretLinkService>(context);
}

}  // namespace muster::broker
