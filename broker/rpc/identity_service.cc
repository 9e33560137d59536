// Implements IdentityService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "broker/app/identity.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "muster/v1/identity_service.grpc.pb.h"

namespace muster::broker {
namespace {

class IdentityService : public v1::IdentityService::CallbackService {
 public:
  explicit IdentityService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* WhoAmI(grpc::CallbackServerContext* call, const v1::WhoAmIRequest*,
                                   v1::WhoAmIResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, out] {
      Answer(reactor, out, broker::WhoAmI(caller, context_.app));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* GetLoginInfo(grpc::CallbackServerContext* call,
                                         const v1::GetLoginInfoRequest*,
                                         v1::GetLoginInfoResponse* out) override {
    auto* reactor = call->DefaultReactor();
    Answer(reactor, out, broker::GetLoginInfo(Caller(call), context_.app));
    return reactor;
  }

  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* call,
                                        const v1::CreateTokenRequest* in,
                                        v1::CreateTokenResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.token_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::CreateToken(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext* call,
                                       const v1::ListTokensRequest* in,
                                       v1::ListTokensResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListTokens(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext* call,
                                        const v1::RevokeTokenRequest* in,
                                        v1::RevokeTokenResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.token_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::RevokeToken(caller, context_.app, *in));
    });
    return reactor;
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeIdentityService(const Context& context) {
  return std::make_unique<IdentityService>(context);
}

}  // namespace muster::broker
