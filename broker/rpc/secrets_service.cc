// Implements SecretsService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "broker/app/secrets.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/owned_messages.h"
#include "broker/rpc/unary.h"
#include "broker/secrets/wipe.h"
#include "muster/v1/secrets_service.grpc.pb.h"

namespace muster::broker {
namespace {

class SecretsService : public v1::SecretsService::CallbackService {
 public:
  explicit SecretsService(const Context& context) : context_(context) {
    SetMessageAllocatorFor_SetSecret(&set_messages_);
  }

  grpc::ServerUnaryReactor* SetSecret(grpc::CallbackServerContext* call,
                                      const v1::SetSecretRequest*,
                                      v1::SetSecretResponse* out) override {
    auto* reactor = call->DefaultReactor();
    const auto in = std::make_shared<v1::SetSecretRequest>(set_messages_.TakeRequest(call));
    OnReaders(context_.token_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      absl::StatusOr<v1::SetSecretResponse> result = broker::SetSecret(caller, context_.app, *in);
      secrets::Wipe(in->mutable_value());
      Answer(reactor, out, std::move(result));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListSecrets(grpc::CallbackServerContext* call,
                                        const v1::ListSecretsRequest* in,
                                        v1::ListSecretsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListSecrets(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* DeleteSecret(grpc::CallbackServerContext* call,
                                         const v1::DeleteSecretRequest* in,
                                         v1::DeleteSecretResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.token_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::DeleteSecret(caller, context_.app, *in));
    });
    return reactor;
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
  OwnedMessages<v1::SetSecretRequest, v1::SetSecretResponse> set_messages_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSecretsService(const Context& context) {
  return std::make_unique<SecretsService>(context);
}

}  // namespace muster::broker
