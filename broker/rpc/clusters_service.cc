// Implements ClustersService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/time/time.h"
#include "broker/app/check_cluster.h"
#include "broker/app/cluster_certificates.h"
#include "broker/app/cordon_cluster.h"
#include "broker/app/forget_cluster.h"
#include "broker/app/show_clusters.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "muster/v1/clusters_service.grpc.pb.h"

namespace muster::broker {
namespace {

class ClustersService : public v1::ClustersService::CallbackService {
 public:
  explicit ClustersService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListClusters(grpc::CallbackServerContext* call,
                                         const v1::ListClustersRequest* in,
                                         v1::ListClustersResponse* out) override {
    auto* reactor = call->DefaultReactor();
    Answer(reactor, out, broker::ListClusters(Caller(call), context_.app, *in));
    return reactor;
  }

  grpc::ServerUnaryReactor* GetCluster(grpc::CallbackServerContext* call,
                                       const v1::GetClusterRequest* in,
                                       v1::GetClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    Answer(reactor, out, broker::GetCluster(Caller(call), context_.app, *in));
    return reactor;
  }

  grpc::ServerUnaryReactor* CheckCluster(grpc::CallbackServerContext* call,
                                         const v1::CheckClusterRequest* in,
                                         v1::CheckClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::CheckCluster(Caller(call), context_.app, *in, absl::FromChrono(call->deadline()),
                         AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* DescribeCluster(grpc::CallbackServerContext* call,
                                            const v1::DescribeClusterRequest* in,
                                            v1::DescribeClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::DescribeCluster(Caller(call), context_.app, *in, absl::FromChrono(call->deadline()),
                            AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* ForgetCluster(grpc::CallbackServerContext* call,
                                          const v1::ForgetClusterRequest* in,
                                          v1::ForgetClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::ForgetCluster(Caller(call), context_.app, *in, AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* CordonCluster(grpc::CallbackServerContext* call,
                                          const v1::CordonClusterRequest* in,
                                          v1::CordonClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::CordonCluster(Caller(call), context_.app, *in, AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* UncordonCluster(grpc::CallbackServerContext* call,
                                            const v1::UncordonClusterRequest* in,
                                            v1::UncordonClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::UncordonCluster(Caller(call), context_.app, *in, AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* InviteCluster(grpc::CallbackServerContext* call,
                                          const v1::InviteClusterRequest* in,
                                          v1::InviteClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.file_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::InviteCluster(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* RevokeCluster(grpc::CallbackServerContext* call,
                                          const v1::RevokeClusterRequest* in,
                                          v1::RevokeClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.file_workers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::RevokeCluster(caller, context_.app, *in));
    });
    return reactor;
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeClustersService(const Context& context) {
  return std::make_unique<ClustersService>(context);
}

}  // namespace muster::broker
