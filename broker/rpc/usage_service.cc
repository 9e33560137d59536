// Implements UsageService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "broker/app/get_usage.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "muster/v1/usage_service.grpc.pb.h"

namespace muster::broker {
namespace {

class UsageService : public v1::UsageService::CallbackService {
 public:
  explicit UsageService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetUsage(grpc::CallbackServerContext* call,
                                     const v1::GetUsageRequest* in,
                                     v1::GetUsageResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.app.counters, reactor,
              [this, caller = CallerOf(context_, *call), reactor, in, out] {
                Answer(reactor, out, broker::GetUsage(caller, context_.app, *in));
              });
    return reactor;
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeUsageService(const Context& context) {
  return std::make_unique<UsageService>(context);
}

}  // namespace muster::broker
