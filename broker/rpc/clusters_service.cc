// The service Clusters.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "broker/engine/engine.h"
#include "broker/rpc/context.h"
#include "broker/rpc/requests.h"
#include "broker/rpc/unary.h"
#include "broker/store/list_limits.h"
#include "contract/validate.h"
#include "muster/v1/clusters_service.grpc.pb.h"

namespace muster::broker {
namespace {

using ClusterList = absl::StatusOr<std::vector<v1::Cluster>>;

// The token is the last name of the page before. A page has one cluster at least, whatever its
// size, and no more than kMaxPageBytes with the others.
void Page(std::vector<v1::Cluster> clusters, const std::string& after, size_t page_size,
          v1::ListClustersResponse* out) {
  auto next = std::upper_bound(
      clusters.begin(), clusters.end(), after,
      [](const std::string& name, const v1::Cluster& cluster) { return name < cluster.name(); });
  size_t bytes = 0;
  while (next != clusters.end() && static_cast<size_t>(out->clusters_size()) < page_size) {
    bytes += next->ByteSizeLong();
    if (bytes > store::kMaxPageBytes && out->clusters_size() > 0) break;
    *out->add_clusters() = std::move(*next++);
  }
  if (next != clusters.end()) out->set_next_page_token(out->clusters().rbegin()->name());
}

class ClustersService : public v1::Clusters::CallbackService {
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
    context_.engine->ListClusters([reactor, in, out, size = *page_size](ClusterList clusters) {
      if (clusters.ok()) Page(*std::move(clusters), in->page_token(), size, out);
      reactor->Finish(rpc::ToGrpc(clusters.status()));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* GetCluster(grpc::CallbackServerContext* call,
                                       const v1::GetClusterRequest* in,
                                       v1::GetClusterResponse* out) override {
    auto* reactor = call->DefaultReactor();
    context_.engine->ListClusters([reactor, in, out](ClusterList clusters) {
      if (!clusters.ok()) return reactor->Finish(rpc::ToGrpc(clusters.status()));
      for (v1::Cluster& cluster : *clusters) {
        if (cluster.name() != in->name()) continue;
        *out->mutable_cluster() = std::move(cluster);
        return reactor->Finish(grpc::Status::OK);
      }
      reactor->Finish(rpc::ToGrpc(contract::Error(
          absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER",
          fmt::format(
              "no agent of a cluster named \"{}\" was ever here; `muster clusters` lists those "
              "that were",
              in->name()),
          {{"cluster", in->name()}})));
    });
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
