// The service Clusters.
#include <grpcpp/grpcpp.h>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/forget_cluster.h"
#include "broker/engine/engine.h"
#include "broker/rpc/ask_agent.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "broker/store/list_limits.h"
#include "contract/validate.h"
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
    const absl::StatusOr<int> page_size = ToPageSize(in->page_size());
    if (!page_size.ok()) {
      reactor->Finish(rpc::ToGrpc(page_size.status()));
      return reactor;
    }
    if (!in->page_token().empty() && !contract::ValidateClusterName(in->page_token()).ok()) {
      reactor->Finish(rpc::ToGrpc(contract::BadField(
          "page_token", "is not from an answer of ListClusters; leave it empty to begin again")));
      return reactor;
    }
    core::ListClusters which;
    which.after = in->page_token();  // the last name of the previous page
    which.max_clusters = static_cast<size_t>(*page_size);
    which.max_bytes = store::kMaxPageBytes;
    core::ClustersReply reply = core::List(which, *context_.engine->clusters());
    if (reply.more) out->set_next_page_token(reply.clusters.back().name());
    out->mutable_clusters()->Add(std::make_move_iterator(reply.clusters.begin()),
                                 std::make_move_iterator(reply.clusters.end()));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* GetCluster(grpc::CallbackServerContext* call,
                                       const v1::GetClusterRequest* in,
                                       v1::GetClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    std::optional<v1::Cluster> cluster = core::Find(in->name(), *context_.engine->clusters());
    if (cluster) *out->mutable_cluster() = *std::move(cluster);
    reactor->Finish(rpc::ToGrpc(cluster ? absl::OkStatus() : NoSuchCluster(in->name())));
    return reactor;
  }

  grpc::ServerUnaryReactor* CheckCluster(grpc::CallbackServerContext* call,
                                         const v1::CheckClusterRequest* in,
                                         v1::CheckClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    agent::v1::AgentQuestion question;
    question.mutable_check();
    AskCluster(context_, in->name(), std::move(question), kCheckPatience,
               absl::FromChrono(call->deadline()),
               [reactor, out](absl::StatusOr<ClusterAnswer> answer) {
                 if (answer.ok()) {
                   out->mutable_checks()->Swap(answer->answer.mutable_check()->mutable_checks());
                 }
                 reactor->Finish(rpc::ToGrpc(answer.status()));
               });
    return reactor;
  }

  grpc::ServerUnaryReactor* DescribeCluster(grpc::CallbackServerContext* call,
                                            const v1::DescribeClusterRequest* in,
                                            v1::DescribeClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    agent::v1::AgentQuestion question;
    question.mutable_describe();
    AskCluster(context_, in->name(), std::move(question), kDescribePatience,
               absl::FromChrono(call->deadline()),
               [reactor, out](absl::StatusOr<ClusterAnswer> answer) {
                 if (answer.ok()) {
                   *out->mutable_cluster() = std::move(answer->cluster);
                   *out->mutable_details() = std::move(*answer->answer.mutable_describe());
                 }
                 reactor->Finish(rpc::ToGrpc(answer.status()));
               });
    return reactor;
  }

  grpc::ServerUnaryReactor* ForgetCluster(grpc::CallbackServerContext* call,
                                          const v1::ForgetClusterRequest* in,
                                          v1::ForgetClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::ForgetCluster(context_.users->PrincipalOf(call->peer()), context_.app, *in,
                          AnswerInto(reactor, out));
    return reactor;
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeClustersService(const Context& context) {
  return std::make_unique<ClustersService>(context);
}

}  // namespace muster::broker
