#include "broker/app/check_cluster.h"

#include <utility>

#include "broker/app/ask_cluster.h"
#include "broker/app/rights.h"

namespace muster::broker {

void CheckCluster(const Principal& principal, const Services& services,
                  const v1::CheckClusterRequest& request, absl::Time client_deadline,
                  CheckClusterDone done) {
  if (auto scope = Authorize(principal, UseCase::kAskClusters); !scope.ok()) {
    return done(scope.status());
  }
  agent::v1::AgentQuestion question;
  question.mutable_check();
  AskCluster(services, request.name(), std::move(question), kCheckPatience, client_deadline,
             [done = std::move(done)](absl::StatusOr<ClusterAnswer> answer) {
               if (!answer.ok()) return done(answer.status());
               v1::CheckClusterResponse response;
               response.mutable_checks()->Swap(answer->answer.mutable_check()->mutable_checks());
               done(std::move(response));
             });
}

void DescribeCluster(const Principal& principal, const Services& services,
                     const v1::DescribeClusterRequest& request, absl::Time client_deadline,
                     DescribeClusterDone done) {
  if (auto scope = Authorize(principal, UseCase::kAskClusters); !scope.ok()) {
    return done(scope.status());
  }
  agent::v1::AgentQuestion question;
  question.mutable_describe()->set_without_jobs(request.without_jobs());
  AskCluster(services, request.name(), std::move(question), kDescribePatience, client_deadline,
             [done = std::move(done)](absl::StatusOr<ClusterAnswer> answer) {
               if (!answer.ok()) return done(answer.status());
               v1::DescribeClusterResponse response;
               *response.mutable_cluster() = std::move(answer->cluster);
               *response.mutable_details() = std::move(*answer->answer.mutable_describe());
               done(std::move(response));
             });
}

}  // namespace muster::broker
