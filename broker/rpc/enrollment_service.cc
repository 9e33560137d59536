// Implements EnrollmentService, which gives certificates to agents.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "broker/app/cluster_certificates.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/unary.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"

namespace muster::broker {
namespace {

class EnrollmentService : public agent::v1::EnrollmentService::CallbackService {
 public:
  explicit EnrollmentService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* Enroll(grpc::CallbackServerContext* call,
                                   const agent::v1::EnrollRequest* in,
                                   agent::v1::EnrollResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.file_workers, reactor, [this, reactor, in, out] {
      Answer(reactor, out, broker::Enroll(context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* call,
                                  const agent::v1::RenewRequest* in,
                                  agent::v1::RenewResponse* out) override {
    auto* reactor = call->DefaultReactor();
    const AgentIdentity identity(context_.app.cluster_access, *context_.users, *call);
    if (absl::Status status = identity.Check(); !status.ok()) {
      reactor->Finish(rpc::ToGrpc(status));
      return reactor;
    }
    OnReaders(context_.file_workers, reactor, [this, reactor, peer = identity.peer(), in, out] {
      Answer(reactor, out, broker::Renew(peer, context_.app, *in));
    });
    return reactor;
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEnrollmentService(const Context& context) {
  return std::make_unique<EnrollmentService>(context);
}

}  // namespace muster::broker
