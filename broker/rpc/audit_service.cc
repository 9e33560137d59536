// Implements AuditService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "broker/app/list_audit.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "muster/v1/audit_service.grpc.pb.h"

namespace muster::broker {
namespace {

class AuditService : public v1::AuditService::CallbackService {
 public:
  explicit AuditService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListAuditRecords(grpc::CallbackServerContext* call,
                                             const v1::ListAuditRecordsRequest* in,
                                             v1::ListAuditRecordsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListAuditRecords(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* VerifyAudit(grpc::CallbackServerContext* call,
                                        const v1::VerifyAuditRequest* in,
                                        v1::VerifyAuditResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.app.counters, reactor,
              [this, call, caller = Caller(call), reactor, in, out] {
                Answer(reactor, out, broker::VerifyAudit(caller, context_.app, *in, [call] {
                         return call->IsCancelled();
                       }));
              });
    return reactor;
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAuditService(const Context& context) {
  return std::make_unique<AuditService>(context);
}

}  // namespace muster::broker
