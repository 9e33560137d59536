#include "broker/app/show_clusters.h"

#include <iterator>
#include <optional>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/ask_cluster.h"
#include "broker/app/rights.h"
#include "broker/engine/engine.h"
#include "broker/store/list_limits.h"
#include "contract/errors.h"
#include "contract/validate.h"

namespace muster::broker {

absl::StatusOr<v1::ListClustersResponse> ListClusters(const Principal& principal,
                                                      const Services& services,
                                                      const v1::ListClustersRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kReadClusters); !scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  if (!request.page_token().empty() && !contract::ValidateClusterName(request.page_token()).ok()) {
    return contract::BadField(
        "page_token", "is not from an answer of ListClusters; leave it empty to begin again");
  }
  core::ListClusters which;
  which.after = request.page_token();  // the last name of the page before
  which.max_clusters = static_cast<size_t>(*page_size);
  which.max_bytes = store::kMaxPageBytes;
  core::ClustersReply reply = core::List(which, *services.engine->clusters());
  v1::ListClustersResponse response;
  if (reply.more) response.set_next_page_token(reply.clusters.back().name());
  response.mutable_clusters()->Add(std::make_move_iterator(reply.clusters.begin()),
                                   std::make_move_iterator(reply.clusters.end()));
  return response;
}

absl::StatusOr<v1::GetClusterResponse> GetCluster(const Principal& principal,
                                                  const Services& services,
                                                  const v1::GetClusterRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kReadClusters); !scope.ok()) return scope.status();
  std::optional<v1::Cluster> cluster = core::Find(request.name(), *services.engine->clusters());
  if (!cluster) return NoSuchCluster(request.name());
  v1::GetClusterResponse response;
  *response.mutable_cluster() = *std::move(cluster);
  return response;
}

}  // namespace muster::broker
